/* SPDX-License-Identifier: Apache-2.0 */
#include "live/sandbox/box_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

/*
 * The target in memory: the same pages of the file that any process has of it, privately. Only pages that hold
 * a relocation or are written to become the process's own. Of code there is a copy: a probe that somebody sets on the file meanwhile would
 * be set here, too, and count what trials do.
 */
#define PAGE 4096u

static uint64_t page_down(uint64_t v)
{
	return v & ~(uint64_t)(PAGE - 1);
}

static uint64_t page_up(uint64_t v)
{
	return page_down(v + PAGE - 1);
}

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

/* Whether one of the segments that are mapped already, those before number `seg`, has the page. */
static bool is_own_page(const struct box_object *o, uint32_t seg, uint64_t page)
{
	const struct space *s = image_space(o->im);
	for (uint32_t i = 0; i < seg; i++) {
		uint64_t va = s->segs[i].va + o->slide;
		if (s->segs[i].mem_len && page >= page_down(va) && page < page_up(va + s->segs[i].mem_len))
			return true;
	}
	return false;
}

/* Maps [from, to) of segment `seg` without content; a first page that is another segment's stays. */
static bool map_zero(const struct box_object *o, uint32_t seg, uint64_t from, uint64_t to)
{
	for (uint64_t p = from; p < to;) {
		uint64_t len = to - p;
		void *got = mmap(at(p), len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (got == at(p))
			return true;
		if (got != MAP_FAILED)
			munmap(got, len);
		/* What lies there and is not of this object is the process's own. */
		if (errno != EEXIST || p != from || !is_own_page(o, seg, p))
			return false;
		if (mprotect(at(p), PAGE, PROT_READ | PROT_WRITE))
			return false;
		p += PAGE;
	}
	return true;
}

static bool read_all(int fd, uint64_t off, uint64_t addr, uint64_t len)
{
	while (len) {
		ssize_t n = pread(fd, at(addr), len, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		addr += (uint64_t)n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return true;
}

/* A file of the same bytes between these offsets that nobody else knows of. -1: it cannot be made. */
static int copy_of(int fd, uint64_t from, uint64_t to)
{
	int copy = memfd_create("code", MFD_CLOEXEC);
	if (copy < 0 || ftruncate(copy, (off_t)to))
		goto fail;
	for (off_t in = (off_t)from, out = (off_t)from; (uint64_t)in < to;) {
		if (lseek(copy, out, SEEK_SET) < 0)
			goto fail;
		ssize_t n = sendfile(copy, fd, &in, to - (uint64_t)in);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			goto fail;
		if (!n) /* behind the file's end is nothing */
			break;
		out = in;
	}
	return copy;
fail:
	if (copy >= 0)
		close(copy);
	return -1;
}

static const char *map_segment(const struct box_object *b, uint32_t seg, int fd)
{
	const struct space_seg *s = &image_space(b->im)->segs[seg];
	uint64_t va = s->va + b->slide, from = page_down(va), to = page_up(va + s->mem_len);
	if (va + s->mem_len < va || to > (b->slide ? BOX_HOST_STACK : UINT64_C(1) << 46) || from < 0x10000)
		return "a segment lies where the sandbox has no room";
	uint64_t file_to = page_up(va + s->file_len);
	bool is_aligned = (va - s->file_off) % PAGE == 0 && s->file_len;
	if (is_aligned) {
		uint64_t off = page_down(s->file_off);
		int code = s->perm & 1 ? copy_of(fd, off, off + (file_to - from)) : fd;
		if (code < 0)
			return "a segment cannot be copied";
		void *got = mmap(at(from), file_to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE, code, (off_t)off);
		if (code != fd)
			close(code);
		is_aligned = got == at(from);
		if (!is_aligned && got != MAP_FAILED)
			munmap(got, file_to - from);
	}
	/* What does not lie in the file as it does in memory, or shares a page with its neighbour, is read. */
	if (!is_aligned && (!map_zero(b, seg, from, to) || (s->file_len && !read_all(fd, s->file_off, va, s->file_len))))
		return "a segment cannot be mapped";
	if (!is_aligned)
		return NULL;
	/* Behind its file bytes a writable segment reads as zeros. */
	if (s->mem_len > s->file_len && s->perm & 2)
		memset(at(va + s->file_len), 0, file_to - (va + s->file_len));
	return file_to < to && !map_zero(b, seg, file_to, to) ? "a segment cannot be mapped" : NULL;
}

/* The address, as the file gives it, of `loc`. Neighbours mostly lie in the same segment, whose number is at `seg`. */
static uint64_t va_near(const struct space *s, uint32_t loc, uint32_t *seg)
{
	if (loc < s->segs[*seg].loc || loc - s->segs[*seg].loc >= s->segs[*seg].mem_len) {
		int found = space_seg_of_loc(s, loc);
		if (found < 0)
			return space_va(s, loc);
		*seg = (uint32_t)found;
	}
	return s->segs[*seg].va + (loc - s->segs[*seg].loc);
}

/* The address a relocation's word gets. */
static uint64_t reloc_value(const struct box_object *b, const struct space *s, uint32_t i, uint32_t *seg)
{
	if (!(s->reloc_kind[i] & SPACE_REL_WIDE))
		return va_near(s, s->reloc_val[i], seg) + b->slide;
	/* One past a segment, say; what is nowhere near stays a number. */
	const struct space_seg *first = &s->segs[0], *last = &s->segs[s->seg_cnt - 1];
	uint64_t v = space_reloc_value(s, i);
	return v >= first->va && v <= last->va + last->mem_len ? v + b->slide : v;
}

/* All at once: doing a page's when it is first touched costs more for each than writing it here, and a trial looks at every
 * page of data in the end (tests/bench/bench_live.c). */
static void apply_relocations(const struct box_object *b)
{
	const struct space *s = image_space(b->im);
	uint32_t seg = 0, to_seg = 0;
	for (uint32_t i = 0; i < s->reloc_cnt; i++) {
		unsigned width = s->reloc_kind[i] & 15;
		uint64_t va = va_near(s, s->reloc_loc[i], &seg), off = va - s->segs[seg].va;
		if ((width != 4 && width != 8) || s->reloc_kind[i] & SPACE_REL_CODE || s->segs[seg].is_extern || off >= s->segs[seg].mem_len ||
		    width > s->segs[seg].mem_len - off)
			continue;
		uint64_t v = reloc_value(b, s, i, &to_seg);
		memcpy(at(va + b->slide), &v, width);
	}
}

static const char *protect(const struct box_object *b)
{
	const struct space *s = image_space(b->im);
	for (uint32_t i = 0; i < s->seg_cnt; i++) {
		const struct space_seg *g = &s->segs[i];
		uint64_t va = g->va + b->slide, from = page_down(va), to = page_up(va + g->mem_len);
		int prot = g->is_extern ? PROT_READ | PROT_EXEC
					: (g->perm & 4 ? PROT_READ : 0) | (g->perm & 2 ? PROT_WRITE : 0) |
						  (g->perm & 1 ? PROT_EXEC : 0);
		/* A page two segments share gets what both need. */
		for (uint32_t k = 0; k < s->seg_cnt; k++)
			if (k != i && page_down(s->segs[k].va + b->slide) < to &&
			    page_up(s->segs[k].va + b->slide + s->segs[k].mem_len) > from)
				prot |= (s->segs[k].perm & 4 ? PROT_READ : 0) | (s->segs[k].perm & 2 ? PROT_WRITE : 0) |
					(s->segs[k].perm & 1 ? PROT_EXEC : 0);
		if (mprotect(at(from), to - from, prot))
			return "a segment cannot be protected";
	}
	return NULL;
}

static bool map_fixed(uint64_t addr, uint64_t len)
{
	return mmap(at(addr), len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at(addr);
}

const char *box_map_object(const struct box_object *b, const struct image *target, int fd)
{
	const struct space *s = image_space(b->im);
	if (!s->seg_cnt)
		return "the target has no segments";
	for (uint32_t i = 0; i < s->seg_cnt; i++) {
		if (!s->segs[i].mem_len)
			continue;
		const char *why = map_segment(b, i, fd);
		if (why)
			return why;
	}
	apply_relocations(b);
	box_bind_imports(b, target);
	return protect(b);
}

const char *box_map_places(void)
{
	/* The stacks have nothing below them: running over their end is a fault. */
	bool ok = map_fixed(BOX_STACK, BOX_STACK_LEN) && map_fixed(BOX_HOST_STACK, BOX_HOST_STACK_LEN) &&
		  map_fixed(BOX_BUFS, BOX_BUF_TOTAL + PAGE) && map_fixed(BOX_HEAP, BOX_HEAP_LEN);
	return ok ? box_import_entry_map() : "there is no room for a stack";
}
