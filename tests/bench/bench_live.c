/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of a small function costs from a warm zygote, inside one process, beside a bare fork + exit + wait:
 *
 *   bench_live LIBRARY FUNC CALLS
 *   CALL_NS FORK_NS        a line for each pair, one after the other
 */
#include "format/fmt.h"
#include "live/sandbox/box.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "bench_live: %s\n", e->text);
	exit(1);
}

static uint64_t fork_ns(void)
{
	uint64_t from = now_ns();
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		exit(1);
	return now_ns() - from;
}

static uint64_t call_ns(struct box *b, uint64_t va, uint64_t k)
{
	const struct box_arg args[] = {{.kind = BOX_ARG_INT, .value = k}, {.kind = BOX_ARG_INT, .value = 2}};
	struct box_result r;
	uint64_t from = now_ns();
	check(box_call(b, va, args, 2, &r));
	uint64_t ns = now_ns() - from;
	if (r.end != BOX_RETURNED || r.rax != k + 2) {
		fprintf(stderr, "bench_live: %s, %" PRIu64 " instead of %" PRIu64 "\n", box_end_name(r.end), r.rax, k + 2);
		exit(1);
	}
	return ns;
}

static uint64_t va_of(const struct fmt_bin *bin, const char *name)
{
	for (size_t i = 0; i < bin->symbols.cnt; i++) {
		const struct fmt_symbol *s = &bin->symbols.data[i];
		if (s->name.len == strlen(name) && !memcmp(s->name.s, name, s->name.len) && !s->is_undefined)
			return s->va;
	}
	fprintf(stderr, "bench_live: no symbol %s\n", name);
	exit(1);
}

int main(int argc, char **argv)
{
	static const uint8_t sha[32];
	struct stat st;
	int fd = argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "usage: bench_live LIBRARY FUNC CALLS\n");
		return 2;
	}
	const uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	struct fmt_bin *bin;
	struct image_data d;
	struct image *im;
	struct buf text = {0};
	struct box *b;
	check(bytes == MAP_FAILED ? &err_nomem : fmt_open(bytes, (size_t)st.st_size, &bin));
	check(image_data_from_fmt(bin, sha, &d));
	check(image_serialize(&d, &text));
	check(image_open_mem(text.data, text.len, bytes, (size_t)st.st_size, NULL, &im));
	uint64_t va = va_of(bin, argv[2]);
	const struct box_opts opts = {.im = im, .fd = fd, .wall_ms = 2000, .cpu_s = 2, .mem_len = 64u << 20};
	check(box_open(&opts, &b));
	for (uint64_t i = 0, n = strtoull(argv[3], NULL, 10); i < n; i++) {
		uint64_t call = call_ns(b, va, i), bare = fork_ns();
		printf("%" PRIu64 " %" PRIu64 "\n", call, bare);
	}
	box_close(b);
	image_unref(im);
	image_data_fini(&d);
	buf_fini(&text);
	fmt_bin_free(bin);
	return 0;
}
