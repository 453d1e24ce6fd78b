/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sandbox is given by others. The first byte chooses:
 *   r  what a target's process left in the result memory, as records of 4 bytes where and 8 bytes what; the bytes before say how the
 *      process ended. Whatever that is, the parent has bounded facts of it.
 *   t  a target: its segments are mapped and its relocations applied by a process that must refuse, not die, and a function is called
 *   c  the same of a code image beside a target
 */
#include "fuzz.h"

#include "arch/arch.h"
#include "format/fmt.h"
#include "lib/elfsample.h"
#include "live/sandbox/box_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct program {
	const uint8_t *bytes;
	size_t len;
	struct buf made;
	struct image *im;
	int fd;
} sample;

static void check(bool is_good)
{
	if (!is_good)
		abort();
}

static bool program_open(struct program *p, const uint8_t *bytes, size_t len)
{
	static const uint8_t sha[32];
	struct fmt_bin *bin;
	struct image_data d;
	*p = (struct program){.bytes = bytes, .len = len, .fd = -1};
	struct err *e = fmt_open(bytes, len, &bin);
	if (e) {
		err_free(e);
		return false;
	}
	e = image_data_from_fmt(bin, sha, &d);
	if (!e) {
		e = image_serialize(&d, &p->made);
		image_data_fini(&d);
	}
	if (!e)
		e = image_open_mem(p->made.data, p->made.len, bytes, len, NULL, &p->im);
	fmt_bin_free(bin);
	bool ok = !e;
	err_free(e);
	p->fd = memfd_create("fuzz_box", MFD_CLOEXEC);
	check(p->fd >= 0 && write(p->fd, bytes, len) == (ssize_t)len);
	return ok;
}

static void program_close(struct program *p)
{
	if (p->im)
		image_unref(p->im);
	if (p->fd >= 0)
		close(p->fd);
	buf_fini(&p->made);
}

/* --- results -------------------------------------------------------------------------------------------------------- */
static void check_result(const struct box *b, const struct box_result *r)
{
	uint32_t import_cnt;
	image_imports(b->opts.im, &import_cnt);
	check(r->end < BOX_END_COUNT && strcmp(box_end_name(r->end), "unknown") != 0);
	check(r->import == UINT32_MAX || (r->end == BOX_EXITED && r->import < import_cnt));
	check(!r->bufs_valid || (r->bufs == b->shared->bufs && r->bufs_len == 5));
	check(!r->is_ip_inside || space_seg_of_va(image_space(b->opts.im), r->ip) >= 0);
	check(!r->is_fault_inside || space_seg_of_va(image_space(b->opts.im), r->fault) >= 0);
	check(r->syscall_nr == -1 || r->end == BOX_SYSCALL);
	check(strlen(b->missing) < sizeof(b->missing));
}

static void try_result(const uint8_t *bytes, size_t len)
{
	static struct box_shared *s;
	if (!s)
		s = calloc(1, sizeof(*s));
	check(s && len >= 4);
	memset(s, 0, sizeof(*s));
	s->state = BOX_STATE_DONE;
	const struct box_report report = {.status = bytes[0] | bytes[1] << 8, .is_timeout = bytes[2] & 1};
	struct box b = {.opts = {.im = sample.im}, .slide = BOX_BASE, .has_namespaces = bytes[2] & 2, .shared = s};
	for (size_t i = 4; i + 12 <= len; i += 12) {
		uint32_t at;
		memcpy(&at, bytes + i, 4);
		at = at % 4 == 3 ? at % sizeof(*s) : at / 4 % offsetof(struct box_shared, input);
		memcpy((uint8_t *)s + at, bytes + i + 4, MIN(sizeof(*s) - at, (size_t)8));
	}
	struct box_result r = {0};
	box_take_result(&b, &report, 5, &r);
	check_result(&b, &r);
	struct box_outcome o;
	box_take_outcome(&b, &report, &o);
	check(o.page_cnt <= BOX_PAGE_MAX && o.made_cnt <= ARRAY_LEN(s->made) && o.pages == s->pages && o.made == s->made);
	check(o.way_cnt <= ARRAY_LEN(s->ways) && o.ways == s->ways && o.answer_cnt <= ARRAY_LEN(s->answers) && o.cmps == s->cmps);
	fuzz_accepted += r.end == BOX_RETURNED;
	fuzz_rejected += r.end != BOX_RETURNED;
}

/* --- programs ------------------------------------------------------------------------------------------------------- */
static void run(const struct program *target, const struct program *code)
{
	const struct box_opts opts = {.im = target->im, .fd = target->fd, .wall_ms = 50, .cpu_s = 1, .mem_len = 16 << 20,
				      .code = code ? code->im : NULL, .code_fd = code ? code->fd : -1};
	struct box *b;
	struct box_result r;
	struct err *e = box_open(&opts, &b);
	fuzz_accepted += !e;
	fuzz_rejected += e != NULL;
	if (e) {
		/* A process that had to die has not refused. */
		check(!strstr(e->text, "died"));
		err_free(e);
		return;
	}
	const struct space *s = image_space(target->im);
	for (uint32_t i = 0; i < s->seg_cnt; i++) {
		if (!(s->segs[i].perm & 1) || s->segs[i].is_extern)
			continue;
		e = code ? box_call_code(b, s->segs[i].va, image_space(code->im)->segs[0].va, NULL, 0, &r) :
			   box_call(b, s->segs[i].va + s->segs[i].mem_len / 2, NULL, 0, &r);
		if (!e)
			check(r.end < BOX_END_COUNT);
		err_free(e);
		break;
	}
	box_close(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct elfsample made;
	struct program p;
	if (!sample.im) {
		const struct elfsample_opts opts = {.bits = 64, .has_hash = true, .has_sections = true};
		elfsample_library(&opts, &made);
		check(program_open(&sample, (const uint8_t *)made.w.file.data, made.w.file.len));
	}
	if (!len)
		return 0;
	if (bytes[0] != 't' && bytes[0] != 'c') {
		if (len > 4)
			try_result(bytes + 1, len - 1);
		return 0;
	}
	if (program_open(&p, bytes + 1, len - 1) && image_space(p.im)->seg_cnt)
		run(bytes[0] == 't' ? &p : &sample, bytes[0] == 't' ? NULL : &p);
	else
		fuzz_rejected++;
	program_close(&p);
	return 0;
}
