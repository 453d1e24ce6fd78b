/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of a small function costs from a warm zygote, inside one process, beside a bare fork + exit + wait:
 *
 *   bench_live call LIBRARY FUNC CALLS
 *   CALL_NS FORK_NS        a line for each pair, one after the other
 *
 * and what relocating at once costs: the zygote and a call of an instruction that returns, with all relocations applied and with none,
 * which is the least that doing it at first touch could cost:
 *
 *   bench_live relocate LIBRARY ROUNDS
 *   RELOCATIONS PAGES      of the file; then a line a round
 *   OPEN_NS CALL_NS OPEN_NONE_NS CALL_NONE_NS
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

struct program {
	const uint8_t *bytes;
	size_t len;
	int fd;
	struct fmt_bin *bin;
	struct image_data d;
	struct buf text;
	struct image *im;
};

/* The image again, of what is in p->d now. */
static void make_image(struct program *p)
{
	image_unref(p->im);
	buf_fini(&p->text);
	check(image_serialize(&p->d, &p->text));
	check(image_open_mem(p->text.data, p->text.len, p->bytes, p->len, NULL, &p->im));
}

static void open_program(struct program *p, const char *path)
{
	static const uint8_t sha[32];
	struct stat st;
	p->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &st)) {
		perror(path);
		exit(1);
	}
	p->len = (size_t)st.st_size;
	p->bytes = mmap(NULL, p->len, PROT_READ, MAP_PRIVATE, p->fd, 0);
	check(p->bytes == MAP_FAILED ? &err_nomem : fmt_open(p->bytes, p->len, &p->bin));
	check(image_data_from_fmt(p->bin, sha, &p->d));
	make_image(p);
}

static void close_program(struct program *p)
{
	image_unref(p->im);
	image_data_fini(&p->d);
	buf_fini(&p->text);
	fmt_bin_free(p->bin);
}

static struct box *open_box(const struct program *p)
{
	const struct box_opts opts = {.im = p->im, .fd = p->fd, .wall_ms = 2000, .cpu_s = 2, .mem_len = 64u << 20};
	struct box *b;
	check(box_open(&opts, &b));
	return b;
}

static void run_calls(struct program *p, const char *func, uint64_t cnt)
{
	uint64_t va = va_of(p->bin, func);
	struct box *b = open_box(p);
	for (uint64_t i = 0; i < cnt; i++) {
		uint64_t call = call_ns(b, va, i), bare = fork_ns();
		printf("%" PRIu64 " %" PRIu64 "\n", call, bare);
	}
	box_close(b);
}

/* An instruction that returns, and nothing else. */
static uint64_t find_ret(const struct program *p)
{
	for (size_t i = 0; i < p->bin->segments.cnt; i++) {
		const struct fmt_segment *s = &p->bin->segments.data[i];
		const uint8_t *at = s->perm & FMT_X ? memchr(p->bytes + s->file_off, 0xc3, s->file_len) : NULL;
		if (at)
			return s->va + (uint64_t)(at - (p->bytes + s->file_off));
	}
	fprintf(stderr, "bench_live: no code\n");
	exit(1);
}

#define RELOCATE_CALLS 20 /* of which the median is taken */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void run_box(const struct program *p, uint64_t va)
{
	uint64_t calls[RELOCATE_CALLS], from = now_ns();
	struct box *b = open_box(p);
	uint64_t opened = now_ns() - from;
	for (unsigned i = 0; i < RELOCATE_CALLS; i++) {
		struct box_result r;
		from = now_ns();
		check(box_call(b, va, NULL, 0, &r));
		calls[i] = now_ns() - from;
		if (r.end != BOX_RETURNED) {
			fprintf(stderr, "bench_live: %s\n", box_end_name(r.end));
			exit(1);
		}
	}
	box_close(b);
	qsort(calls, RELOCATE_CALLS, sizeof(*calls), by_size);
	printf("%" PRIu64 " %" PRIu64 " ", opened, calls[RELOCATE_CALLS / 2]);
}

static void run_relocate(struct program *all, const char *path, uint64_t rounds)
{
	struct program none = {0};
	uint64_t va = find_ret(all), pages = 0, last = UINT64_MAX;
	open_program(&none, path);
	none.d.reloc_loc.cnt = none.d.reloc_val.cnt = none.d.reloc_kind.cnt = 0;
	make_image(&none);
	const struct space *s = image_space(all->im);
	for (uint32_t i = 0; i < s->reloc_cnt; i++) {
		uint64_t page = space_va(s, s->reloc_loc[i]) / 4096;
		pages += page != last;
		last = page;
	}
	printf("%u %" PRIu64 "\n", s->reloc_cnt, pages);
	for (uint64_t i = 0; i < rounds; i++) {
		run_box(all, va);
		run_box(&none, va);
		printf("\n");
	}
	close_program(&none);
}

int main(int argc, char **argv)
{
	struct program p = {0};
	bool is_call = argc == 5 && !strcmp(argv[1], "call");
	if (!is_call && (argc != 4 || strcmp(argv[1], "relocate") != 0)) {
		fprintf(stderr, "usage: bench_live call LIBRARY FUNC CALLS | relocate LIBRARY ROUNDS\n");
		return 2;
	}
	open_program(&p, argv[2]);
	if (is_call)
		run_calls(&p, argv[3], strtoull(argv[4], NULL, 10));
	else
		run_relocate(&p, argv[2], strtoull(argv[3], NULL, 10));
	close_program(&p);
	return 0;
}
