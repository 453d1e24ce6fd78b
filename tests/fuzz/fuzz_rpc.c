/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver sends: bytes through a real socket into the workbench over a small program. Beyond not crashing: lines do not depend on
 * how the bytes were cut, every request is answered by one line that is JSON-RPC, every one ends, and the cursor stays on the
 * screen. Time is made up, so that nothing is waited for.
 */
#include "fuzz.h"

#include "lib/elfsample.h"
#include "rpc/lines.h"
#include "rpc/sock.h"
#include "session/ops_doc.h"
#include "tui/rpc.h"
#include "tui/tui_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TURN_MAX 20000

static struct ses *target;
static char folder[] = "/tmp/scry-fuzz-rpc-XXXXXX";

/* A program to look at, opened once; its file is not needed after that. */
static void open_target(void)
{
	char path[64];
	struct elfsample sample;
	struct elfsample_opts opts = {.bits = 64, .has_hash = true, .has_sections = true};
	struct ses_opts ses_opts = {.no_store = true, .threads = 1};
	if (!mkdtemp(folder))
		abort();
	setenv("SCRY_STORE", folder, 1);
	snprintf(path, sizeof(path), "%s/lib.so", folder);
	elfsample_library(&opts, &sample);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(sample.w.file.data, 1, sample.w.file.len, f) != sample.w.file.len || fclose(f))
		abort();
	elfw_fini(&sample.w);
	struct err *e = ses_open(path, &ses_opts, &target);
	if (e)
		abort();
}

static void take_lines(struct rpc_lines *l, struct buf *out)
{
	const char *line;
	size_t n;
	enum rpc_line what;
	while ((what = rpc_lines_next(l, &line, &n)) != RPC_LINE_NONE) {
		buf_add_ch(out, (char)what);
		if (what == RPC_LINE_READY)
			buf_add(out, line, n);
	}
}

/* The lines, one behind the other, each with what it was. */
static void cut_into(const uint8_t *bytes, size_t len, size_t step, struct buf *out)
{
	struct rpc_lines l = {0};
	for (size_t at = 0; at < len; at += step) {
		rpc_lines_feed(&l, bytes + at, MIN(step, len - at));
		take_lines(&l, out);
	}
	rpc_lines_end(&l);
	take_lines(&l, out);
	rpc_lines_fini(&l);
}

static void check_split(const uint8_t *bytes, size_t len)
{
	struct buf whole = {0}, cut = {0};
	cut_into(bytes, len, len + 1, &whole);
	cut_into(bytes, len, 1, &cut);
	if (whole.len != cut.len || (whole.len && memcmp(whole.data, cut.data, whole.len)))
		abort();
	buf_fini(&whole);
	buf_fini(&cut);
}

static void check_answers(const struct buf *got)
{
	for (size_t at = 0; at < got->len;) {
		const char *end = memchr(got->data + at, '\n', got->len - at);
		struct arena a = {0};
		struct ops_doc doc;
		if (!end)
			abort();
		struct err *e = ops_doc_parse("answer", got->data + at, (size_t)(end - got->data) - at, &a, &doc);
		bool has_result = !e && ops_doc_find(&doc, "result"), has_error = !e && ops_doc_find(&doc, "error");
		if (e || has_result == has_error || !ops_doc_find(&doc, "id"))
			abort();
		fuzz_accepted += has_result;
		fuzz_rejected += has_error;
		arena_fini(&a);
		at = (size_t)(end - got->data) + 1;
	}
}

/* One turn of the workbench's loop. */
static void turn(struct tui *t, struct tui_rpc *r, int epoll_fd, uint64_t now, bool is_stuck)
{
	struct epoll_event events[4];
	int n = epoll_wait(epoll_fd, events, 4, 0);
	for (int i = 0; i < n; i++)
		tui_rpc_event(r, events[i].data.u32, events[i].events);
	if (t->is_dirty)
		tui_draw(t);
	if (t->cur_x >= t->grid.w || t->cur_y >= t->grid.h)
		abort();
	tui_rpc_step(r, now, is_stuck);
}

static void drive(struct tui *t, const uint8_t *bytes, size_t len)
{
	struct sockaddr_un at;
	struct tui_rpc *r;
	struct buf got = {0};
	struct timespec ts;
	char path[64];
	int fd, epoll_fd = epoll_create1(0);
	size_t sent = 0;
	snprintf(path, sizeof(path), "%s/s", folder);
	if (tui_rpc_new(path, &r) || tui_rpc_watch(r, epoll_fd, 7) || rpc_sock_path(path, false, &at) || rpc_connect(&at, &fd))
		abort();
	tui_rpc_show(r, t);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	for (uint64_t i = 1;; i++) {
		char answer[4096];
		ssize_t n = sent < len ? send(fd, bytes + sent, len - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
		sent += n > 0 ? (size_t)n : 0;
		if (sent == len)
			shutdown(fd, SHUT_WR);
		turn(t, r, epoll_fd, ((uint64_t)ts.tv_sec + i * 100000) * 1000000000u, len & 1);
		n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
		if (n > 0)
			buf_add(&got, answer, (size_t)n);
		else if (!n)
			break;
		if (i > TURN_MAX + len)
			abort(); /* a request that never ends */
	}
	check_answers(&got);
	buf_fini(&got);
	close(fd);
	close(epoll_fd);
	tui_rpc_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct tui *t = calloc(1, sizeof(*t));
	if (!target)
		open_target();
	check_split(bytes, len);
	if (!t || !tui_init(t, target, 90, 24))
		abort();
	tui_draw(t);
	drive(t, bytes, len);
	tui_fini(t);
	free(t);
	return 0;
}
