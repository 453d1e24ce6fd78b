/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small facts: notes (build-id, system, threads of a core), the interpreter, .gnu_debuglink,
 * and where unwind tables, relocated read-only data and the offset table lie.
 */
#include "format/elf_int.h"

#include <elf.h>

/* Where a thread's id and program counter stand in the NT_PRSTATUS note of Linux (struct
 * elf_prstatus). */
struct prstatus_layout {
	uint16_t machine;
	bool is_64;
	uint32_t pid_off, pc_off, word_len;
};

static const struct prstatus_layout prstatus_layouts[] = {
	{EM_X86_64, true, 32, 112 + 16 * 8, 8},
	{EM_X86_64, false, 24, 72 + 16 * 8, 8}, /* x32 keeps 64-bit registers */
	{EM_386, false, 24, 72 + 12 * 4, 4},
	{EM_AARCH64, true, 32, 112 + 32 * 8, 8},
	{EM_ARM, false, 24, 72 + 15 * 4, 4},
	{EM_RISCV, true, 32, 112, 8},
	{EM_PPC64, true, 32, 112 + 32 * 8, 8},
	{EM_S390, true, 32, 112 + 8, 8},
};

static struct err *add_thread(struct elf *e, struct cur desc)
{
	for (size_t i = 0; i < ARRAY_LEN(prstatus_layouts); i++) {
		const struct prstatus_layout *l = &prstatus_layouts[i];
		if (l->machine != e->machine || l->is_64 != e->is_64)
			continue;
		cur_seek(&desc, l->pid_off);
		uint32_t pid = cur_u32(&desc);
		cur_seek(&desc, l->pc_off);
		uint64_t pc = cur_word(&desc, l->word_len);
		if (desc.failed) {
			finding_add(&e->b->findings, FINDING_WARNING, UINT64_MAX, "core note",
				    "NT_PRSTATUS is too short");
			return NULL;
		}
		if (!elf_take(e, 2 * sizeof(struct fmt_range)))
			return NULL;
		return VEC_PUSH(&e->b->threads, (struct fmt_range){pc, pid}) ? NULL : &err_nomem;
	}
	return NULL;
}

static bool name_is(const uint8_t *name, uint32_t len, const char *want)
{
	size_t want_len = strlen(want);
	return name && len >= want_len && len <= want_len + 1 && memcmp(name, want, want_len) == 0;
}

static void note_system(struct elf *e, struct cur desc)
{
	static const char *const systems[] = {"linux", "hurd", "solaris", "freebsd", "netbsd"};
	uint32_t os = cur_u32(&desc);
	if (!desc.failed && os < ARRAY_LEN(systems) && e->osabi == ELFOSABI_SYSV)
		e->b->os_name = systems[os];
}

static struct err *take_note(struct elf *e, const uint8_t *name, uint32_t name_len, uint32_t type,
			     struct cur desc)
{
	struct fmt_bin *b = e->b;
	if (e->type == ET_CORE) {
		bool is_thread = type == NT_PRSTATUS && name_is(name, name_len, "CORE");
		return is_thread ? add_thread(e, desc) : NULL;
	}
	if (name_is(name, name_len, "GNU") && type == NT_GNU_BUILD_ID && !b->build_id && desc.len &&
	    desc.len <= 64) {
		b->build_id = desc.base;
		b->build_id_len = (uint32_t)desc.len;
	} else if (name_is(name, name_len, "GNU") && type == NT_GNU_ABI_TAG) {
		note_system(e, desc);
	} else if (e->osabi == ELFOSABI_SYSV) {
		if (name_is(name, name_len, "FreeBSD"))
			b->os_name = "freebsd";
		else if (name_is(name, name_len, "OpenBSD"))
			b->os_name = "openbsd";
		else if (name_is(name, name_len, "NetBSD"))
			b->os_name = "netbsd";
		else if (name_is(name, name_len, "Android"))
			b->os_name = "android";
	}
	return NULL;
}

static uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

static struct err *read_notes(struct elf *e, uint64_t off, uint64_t len, uint64_t align)
{
	struct findings *f = &e->b->findings;
	align = align == 8 ? 8 : 4;
	if (off > e->len || len > e->len - off) {
		finding_add(f, FINDING_WARNING, off, "notes", "reach past the end of the file");
		len = off < e->len ? e->len - off : 0;
	}
	struct cur c = elf_cur(e, off, len);
	while (cur_left(&c) >= 12) {
		uint32_t name_len = cur_u32(&c);
		uint32_t desc_len = cur_u32(&c);
		uint32_t type = cur_u32(&c);
		if (name_len == 0 && desc_len == 0 && type == 0)
			return NULL; /* padding */
		size_t start = c.pos;
		const uint8_t *name = cur_bytes(&c, name_len);
		cur_seek(&c, align_up(start + (uint64_t)name_len, align));
		size_t desc_off = c.pos;
		const uint8_t *desc = cur_bytes(&c, desc_len);
		if (c.failed) {
			finding_add(f, FINDING_WARNING, off + start - 12, "note",
				    "reaches past the end of its table");
			return NULL;
		}
		struct err *err =
			take_note(e, name, name_len, type, cur_make(desc, desc_len, e->is_be));
		if (err)
			return err;
		uint64_t next = align_up(desc_off + (uint64_t)desc_len, align);
		cur_seek(&c, next < c.len ? next : c.len);
	}
	return NULL;
}

static void read_interp(struct elf *e, const struct elf_ph *ph)
{
	struct cur c = elf_cur(e, ph->off, ph->file_len);
	size_t len;
	const char *s = cur_str(&c, &len);
	if (!s || len == 0 || len > 4096)
		finding_add(&e->b->findings, FINDING_WARNING, ph->off, "interpreter",
			    "is not a path of the file");
	else
		e->b->interp = (struct fmt_str){s, (uint32_t)len};
}

/* Known by the program headers. */
static struct err *read_program_facts(struct elf *e)
{
	struct fmt_bin *b = e->b;
	struct err *err = NULL;
	for (uint32_t i = 0; i < e->phnum && !err; i++) {
		struct elf_ph ph;
		if (!elf_read_ph(e, i, &ph))
			break;
		switch (ph.type) {
		case PT_INTERP:
			if (!b->interp.s && ph.file_len)
				read_interp(e, &ph);
			break;
		case PT_NOTE:
			err = read_notes(e, ph.off, ph.file_len, ph.align);
			break;
		case PT_GNU_EH_FRAME:
			if (fmt_segment_at(b, ph.va))
				b->eh_frame_hdr = (struct fmt_range){ph.va, ph.mem_len};
			break;
		case PT_GNU_RELRO:
			b->relro = (struct fmt_range){ph.va, ph.mem_len};
			break;
		default:
			break;
		}
	}
	return err;
}

static void read_debuglink(struct elf *e)
{
	struct fmt_bin *b = e->b;
	const struct fmt_section *s = fmt_section_named(b, ".gnu_debuglink");
	if (!s || s->file_len == 0)
		return;
	struct cur c = elf_cur(e, s->file_off, s->file_len);
	size_t len;
	const char *name = cur_str(&c, &len);
	cur_seek(&c, align_up(c.pos, 4));
	uint32_t crc = cur_u32(&c);
	if (c.failed || len == 0 || len > 4096) {
		finding_add(&b->findings, FINDING_WARNING, s->file_off, ".gnu_debuglink",
			    "is cut or has no name");
		return;
	}
	b->debuglink = (struct fmt_str){name, (uint32_t)len};
	b->debuglink_crc = crc;
}

/* What only the sections say, or what they say when no program header does. */
static struct err *read_section_facts(struct elf *e)
{
	struct fmt_bin *b = e->b;
	read_debuglink(e);
	for (uint32_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		bool is_mapped = s->is_alloc && s->mem_len && fmt_segment_at(b, s->va);
		if (s->kind == FMT_SEC_EH_FRAME && is_mapped && b->eh_frame.len == 0)
			b->eh_frame = (struct fmt_range){s->va, s->mem_len};
		if (s->kind == FMT_SEC_EH_FRAME_HDR && is_mapped && b->eh_frame_hdr.len == 0)
			b->eh_frame_hdr = (struct fmt_range){s->va, s->mem_len};
		if (b->got.len == 0 && s->kind == FMT_SEC_GOT && is_mapped)
			b->got = (struct fmt_range){s->va, s->mem_len};
		struct elf_sh sh;
		if (s->raw_type != SHT_NOTE || b->build_id || e->type == ET_CORE ||
		    !elf_read_sh(e, i + 1, &sh))
			continue;
		struct err *err = read_notes(e, s->file_off, s->file_len, sh.align);
		if (err)
			return err;
	}
	return NULL;
}

/* Without a section .eh_frame is where the header's pointer says: only the usual encoding, 4 bytes
 * relative to itself (LSB 5.0, 10.6.2), is read here; the length is what is left of the segment. */
static void find_eh_frame(struct elf *e)
{
	struct fmt_bin *b = e->b;
	enum { SDATA4_PCREL = 0x1b };
	uint8_t raw[8];
	if (b->eh_frame.len || b->eh_frame_hdr.len < sizeof(raw) ||
	    fmt_read(b, b->eh_frame_hdr.va, raw, sizeof(raw)) != sizeof(raw) || raw[0] != 1 ||
	    raw[1] != SDATA4_PCREL)
		return;
	uint64_t va =
		b->eh_frame_hdr.va + 4 + (uint64_t)(int64_t)(int32_t)load_u32(raw + 4, e->is_be);
	uint64_t off;
	uint64_t len;
	if (elf_at(e, va, &off, &len))
		b->eh_frame = (struct fmt_range){va, len};
}

struct err *elf_load_notes(struct elf *e)
{
	struct err *err = read_program_facts(e);
	if (!err)
		err = read_section_facts(e);
	if (!err)
		find_eh_frame(e);
	if (!err && e->b->interp.s && e->osabi == ELFOSABI_SYSV &&
	    strcmp(e->b->os_name, "sysv") == 0)
		e->b->os_name = memmem(e->b->interp.s, e->b->interp.len, "ld-linux",
				       8) || memmem(e->b->interp.s, e->b->interp.len, "ld-musl", 7)
					? "linux"
					: "sysv";
	return err;
}
