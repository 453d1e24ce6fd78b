/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/tui_int.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Work that may outlast a frame runs in a thread of its own with a snapshot of its own and touches nothing of ours. It
 * tells its end by an eventfd; cancelling it is setting a flag that every operation of the session looks at.
 */
static void *job_main(void *arg)
{
	struct tui_job *j = arg;
	uint64_t one = 1;
	j->run(j);
	atomic_store(&j->is_done, true);
	ssize_t n = write(j->event_fd, &one, sizeof(one));
	(void)n;
	return NULL;
}

static void job_free(struct tui_job *j)
{
	if (j->fini)
		j->fini(j);
	ses_snap_put(j->snap);
	free(j);
}

void tui_job_start(struct tui *t, struct tui_job *j)
{
	pthread_t thread;
	j->snap = ses_snap_get(t->ses);
	j->call.cancel = &j->is_cancelled;
	j->call.caps |= SES_CAP_READ;
	j->event_fd = t->job_fd;
	j->next = t->jobs;
	t->jobs = j;
	if (t->job_fd >= 0 && pthread_create(&thread, NULL, job_main, j) == 0) {
		j->thread = (unsigned long)thread;
		return;
	}
	j->thread = 0;
	j->run(j);
	atomic_store(&j->is_done, true);
	tui_jobs_reap(t, false);
}

void tui_job_cancel(struct tui_job *j)
{
	if (j)
		atomic_store(&j->is_cancelled, true);
}

void tui_jobs_reap(struct tui *t, bool wait)
{
	for (struct tui_job **at = &t->jobs; *at;) {
		struct tui_job *j = *at;
		if (wait)
			tui_job_cancel(j);
		if (!wait && !atomic_load(&j->is_done)) {
			at = &j->next;
			continue;
		}
		*at = j->next;
		if (j->thread)
			pthread_join((pthread_t)j->thread, NULL);
		if (!atomic_load(&j->is_cancelled))
			j->done(t, j);
		job_free(j);
		at = &t->jobs; /* `done` may have started another */
	}
}
