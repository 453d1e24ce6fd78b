/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol versions (LSB 5.0, "Symbol Versioning"): DT_VERNEED says which version numbers stand for
 * which version of which library, DT_VERDEF which are the file's own. Both are lists linked by
 * forward offsets, so a walk always ends; how long it may take is bounded by the number of versions
 * there can be. The run-time linker follows the links and looks at none of the counts
 * (DT_VERNEEDNUM, vn_cnt), which may therefore lie; so does this.
 */
#include "format/elf_int.h"

#include <elf.h>

enum { VERSION_MAX = 1 << 15, STEP_MAX = 1 << 17 };

static struct fmt_str dyn_string(struct elf *e, uint64_t off)
{
	return elf_str(e, &e->dynsym.str, off);
}

static void set_version(struct elf *e, uint16_t idx, struct fmt_str name, struct fmt_str library)
{
	idx &= VERSION_MAX - 1;
	if (idx < e->version_cnt && !e->versions[idx].is_there)
		e->versions[idx] = (struct elf_version){name, library, true};
}

static void bad_list(struct elf *e, const char *what, uint64_t va)
{
	finding_add_va(&e->b->findings, FINDING_WARNING, va, what,
		       "the list leaves its segment or has no end");
}

static bool read_need_versions(struct elf *e, struct cur list, uint64_t pos, struct fmt_str library,
			       uint32_t *steps)
{
	for (;;) {
		cur_seek(&list, pos);
		cur_u32(&list);
		cur_u16(&list);
		uint16_t idx = cur_u16(&list);
		uint32_t name = cur_u32(&list);
		uint32_t next = cur_u32(&list);
		if (list.failed || (*steps)++ > STEP_MAX)
			return false;
		set_version(e, idx, dyn_string(e, name), library);
		if (next == 0)
			return true;
		pos += next;
	}
}

static void read_needs(struct elf *e)
{
	uint64_t off;
	uint64_t len;
	uint64_t va = e->dyn.verneed;
	if (va == 0)
		return;
	if (!elf_at(e, va, &off, &len)) {
		bad_list(e, "needed versions", va);
		return;
	}
	struct cur list = elf_cur(e, off, len);
	uint64_t pos = 0;
	uint32_t steps = 0;
	for (;;) {
		cur_seek(&list, pos);
		cur_u16(&list);
		uint16_t cnt = cur_u16(&list);
		uint32_t file = cur_u32(&list);
		uint32_t aux = cur_u32(&list);
		uint32_t next = cur_u32(&list);
		if (list.failed || steps++ > STEP_MAX ||
		    (cnt && !read_need_versions(e, list, pos + aux, dyn_string(e, file), &steps))) {
			bad_list(e, "needed versions", va);
			return;
		}
		if (next == 0)
			return;
		pos += next;
	}
}

static void read_defs(struct elf *e)
{
	uint64_t off;
	uint64_t len;
	uint64_t va = e->dyn.verdef;
	if (va == 0)
		return;
	if (!elf_at(e, va, &off, &len)) {
		bad_list(e, "defined versions", va);
		return;
	}
	struct cur list = elf_cur(e, off, len);
	uint64_t pos = 0;
	for (uint32_t steps = 0;; steps++) {
		cur_seek(&list, pos);
		cur_u16(&list);
		uint16_t flags = cur_u16(&list);
		uint16_t idx = cur_u16(&list);
		cur_u16(&list);
		cur_u32(&list);
		uint32_t aux = cur_u32(&list);
		uint32_t next = cur_u32(&list);
		cur_seek(&list, pos + aux);
		uint32_t name = cur_u32(&list);
		if (list.failed || steps > STEP_MAX) {
			bad_list(e, "defined versions", va);
			return;
		}
		if (!(flags & VER_FLG_BASE))
			set_version(e, idx, dyn_string(e, name), (struct fmt_str){0});
		if (next == 0)
			return;
		pos += next;
	}
}

struct err *elf_load_versions(struct elf *e)
{
	if (e->dyn.versym == 0 || (e->dyn.verneed == 0 && e->dyn.verdef == 0))
		return NULL;
	if (!elf_take(e, VERSION_MAX * sizeof(*e->versions)))
		return NULL;
	e->versions = alloc_array(VERSION_MAX, sizeof(*e->versions));
	if (!e->versions)
		return &err_nomem;
	e->version_cnt = VERSION_MAX;
	read_defs(e);
	read_needs(e);
	return NULL;
}
