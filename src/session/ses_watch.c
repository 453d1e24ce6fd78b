/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning of what other processes commit: each of them touches rev.stamp after its commit, and the kernel tells who watches
 * that file. Nothing is polled; what the news is, ses_refresh() finds out.
 */
#include "session/ses_int.h"
#include "session/store_int.h"

#include <errno.h>
#include <sys/inotify.h>
#include <unistd.h>

int ses_watch_fd(struct ses *s)
{
	if (s->watch_fd >= 0 || !s->store || !ses_has_hash(s))
		return s->watch_fd;
	_cleanup_as_ struct store_as as = store_as_user(s->store);
	_cleanup_free_ char *path = store_target_path(s->store, s->sha256, "rev.stamp");
	int fd = path ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
	if (fd < 0)
		return -1;
	int wd = inotify_add_watch(fd, path, IN_ATTRIB);
	if (wd < 0 && errno == ENOENT) {
		/* A target nobody committed to by a scry that touches it. */
		store_touch_stamp(s->store, s->sha256);
		wd = inotify_add_watch(fd, path, IN_ATTRIB);
	}
	if (wd < 0)
		close(fd);
	else
		s->watch_fd = fd;
	return s->watch_fd;
}

void ses_watch_clear(struct ses *s)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	while (s->watch_fd >= 0 && read(s->watch_fd, events, sizeof(events)) > 0)
		;
}
