/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relocations. In a program those of the dynamic table (RELA, REL, JMPREL, RELR), as the run-time
 * linker applies them with a load bias of 0; in an object those of its allocated sections, as a
 * linker would with the addresses of elf_sec.c. What a type means is a row of a table per machine;
 * this file walks the tables, looks up symbols, and sorts the result by address.
 */
#include "format/elf_int.h"

#include <elf.h>

struct raw_rel {
	uint64_t off, addend;
	uint32_t sym, type;
};

/* One table and what it applies to. */
struct rel_table {
	const char *what;
	const struct elf_symtab *syms;
	uint64_t off; /* in the file */
	uint64_t cnt;
	bool has_addend;
	uint64_t base_va;  /* objects: the section it applies to, else 0 */
	uint64_t base_len; /* and its length, else UINT64_MAX */
	bool is_hint; /* a section of a program without a dynamic table: only what needs no symbol
			 is taken */
	uint32_t bad_place_cnt, bad_symbol_cnt;
};

const struct elf_rel_rules *elf_rel_rules_of(uint16_t machine)
{
	static const struct elf_rel_rules *const known[] = {&elf_rel_x86_64, &elf_rel_i386,
							    &elf_rel_a64};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i]->machine == machine)
			return known[i];
	}
	size_t cnt;
	const struct elf_rel_rules *others = elf_rel_others(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		if (others[i].machine == machine)
			return &others[i];
	}
	return NULL;
}

const struct elf_rel_rule *elf_rel_find_rule(const struct elf_rel_rules *rules, uint32_t type)
{
	for (size_t i = 0; rules && i < rules->cnt; i++) {
		if (rules->rules[i].type == type)
			return &rules->rules[i];
	}
	return NULL;
}

static uint32_t entry_len(const struct elf *e, bool has_addend)
{
	if (e->is_64)
		return has_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
	return has_addend ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel);
}

static struct raw_rel read_raw(const struct elf *e, struct cur *c, bool has_addend)
{
	struct raw_rel r = {0};
	unsigned word = elf_word_len(e);
	r.off = cur_word(c, word);
	uint64_t info = cur_word(c, word);
	if (has_addend)
		r.addend = e->is_64 ? cur_u64(c) : (uint64_t)(int64_t)(int32_t)cur_u32(c);
	r.sym = (uint32_t)(e->is_64 ? info >> 32 : info >> 8);
	r.type = (uint32_t)(e->is_64 ? info & UINT32_MAX : info & 0xff);
	if (e->is_64 && e->machine == EM_MIPS) {
		/* A symbol, then a second one and three types, a byte each; the first type comes
		 * last. */
		r.sym = (uint32_t)(e->is_be ? info >> 32 : info);
		r.type = (uint32_t)(e->is_be ? info & 0xff : info >> 56);
	}
	return r;
}

/* The field as the file has it, sign-extended: the addend of a REL entry. */
static uint64_t read_field(const struct elf *e, uint64_t va, unsigned width)
{
	uint64_t off;
	uint64_t len;
	if (!elf_at(e, va, &off, &len) || len < width)
		return 0;
	const uint8_t *p = e->bytes + off;
	switch (width) {
	case 1:
		return (uint64_t)(int64_t)(int8_t)*p;
	case 2:
		return (uint64_t)(int64_t)(int16_t)load_u16(p, e->is_be);
	case 4:
		return e->is_64 ? (uint64_t)(int64_t)(int32_t)load_u32(p, e->is_be)
				: load_u32(p, e->is_be);
	default:
		return load_u64(p, e->is_be);
	}
}

static void report_type(struct elf *e, uint32_t type, uint64_t va)
{
	uint32_t bit = type & 0xffff;
	if (e->seen_types[bit / 64] >> (bit % 64) & 1)
		return;
	e->seen_types[bit / 64] |= (uint64_t)1 << (bit % 64);
	finding_add_va(&e->b->findings, FINDING_NOTE, va, "relocation",
		       "type %u of %s is not applied", type, e->b->machine_name);
}

/* Where the symbol of a relocation is. */
struct place {
	uint64_t va;
	uint32_t import;
	uint64_t size_len;
	bool is_ifunc;
};

static struct place find_place(struct elf *e, struct rel_table *t, uint32_t sym)
{
	struct place p = {.import = UINT32_MAX};
	if (sym == 0)
		return p;
	if (sym >= t->syms->cnt) {
		t->bad_symbol_cnt++;
		return p;
	}
	uint32_t idx = t->syms->first + sym - 1;
	const struct fmt_symbol *s = &e->b->symbols.data[idx];
	p.import = e->import_of[idx];
	p.va = p.import != ELF_NO_INDEX ? e->b->imports.data[p.import].va : s->va;
	p.size_len = s->size_len;
	p.is_ifunc = s->type == FMT_SYM_IFUNC && !s->is_undefined;
	return p;
}

static uint64_t slot_of(const struct elf *e, const struct rel_table *t, uint32_t sym)
{
	if (sym == 0 || sym >= t->syms->cnt || !e->got_slot || e->got_va == 0)
		return 0;
	uint32_t slot = e->got_slot[t->syms->first + sym - 1];
	return slot == ELF_NO_INDEX ? 0 : e->got_va + (uint64_t)slot * elf_word_len(e);
}

/* `call *foo@GOT` and its like without a base register take the slot's address, not its offset
 * (i386 psABI, R_386_GOT32X): the ModRM byte before the field says so. */
static bool is_absolute_got(const struct elf *e, const struct elf_rel_rule *rule, uint64_t va)
{
	uint64_t off;
	uint64_t len;
	if (!rule->arg || rule->op != ELF_REL_GOT_OFF || va == 0 || !elf_at(e, va - 1, &off, &len))
		return false;
	return (e->bytes[off] & 0xc7) == 0x05;
}

static void set_insn(const struct elf *e, struct fmt_reloc *r, const struct elf_rel_rule *rule)
{
	uint64_t off;
	uint64_t len;
	r->kind = FMT_REL_CODE;
	if (!elf_at(e, r->va, &off, &len) || len < 4) {
		r->kind = FMT_REL_OTHER;
		return;
	}
	/* Instructions are little-endian whatever the data; `value` is written in the order of
	 * data. */
	uint64_t p = rule->op == ELF_REL_A64_GOT_LO15 ? e->got_va : r->va;
	uint32_t insn = elf_a64_patch(rule, load_u32(e->bytes + off, false), r->target, p);
	r->value = e->is_be ? __builtin_bswap32(insn) : insn;
}

/* The field of an absolute or relative reference, in code or data. */
static void set_reference(const struct elf *e, struct fmt_reloc *r, const struct elf_rel_rule *rule,
			  uint8_t perm)
{
	bool is_code = (perm & FMT_X) && !(perm & FMT_W);
	bool is_x86 = e->machine == EM_386 || e->machine == EM_X86_64;
	switch (rule->op) {
	case ELF_REL_ABS:
		r->value = r->target;
		if (r->width == elf_word_len(e) && !is_code)
			r->kind = r->import == UINT32_MAX ? FMT_REL_POINTER : FMT_REL_IMPORT;
		else
			r->kind = FMT_REL_CODE;
		return;
	case ELF_REL_PC:
		r->value = r->target - r->va;
		/* x86 counts from the end of the field, which the assembler has put into the
		 * addend. */
		if (is_x86 && is_code)
			r->target += r->width;
		break;
	case ELF_REL_GOT_OFF:
		r->value = is_absolute_got(e, rule, r->va) ? r->target : r->target - e->got_va;
		break;
	default:
		r->value = r->target - r->va; /* GOT_PC */
		break;
	}
	r->kind = FMT_REL_CODE;
}

static void set_irelative(struct fmt_reloc *r, uint64_t resolver)
{
	r->kind = FMT_REL_IRELATIVE;
	r->value = r->target = resolver;
	r->import = UINT32_MAX;
}

/* Fills kind, value and target. */
static void compute(struct elf *e, struct rel_table *t, const struct elf_rel_rule *rule,
		    const struct raw_rel *raw, struct fmt_reloc *r)
{
	uint8_t perm = 0;
	const struct fmt_segment *seg = fmt_segment_at(e->b, r->va);
	if (seg)
		perm = seg->perm;
	struct place p = find_place(e, t, raw->sym);
	uint64_t addend = t->has_addend ? raw->addend : read_field(e, r->va, r->width);
	r->import = p.import;
	switch (rule->op) {
	case ELF_REL_NONE:
		return;
	case ELF_REL_COPY:
		r->kind = FMT_REL_COPY;
		r->target = p.va;
		return;
	case ELF_REL_TLS:
		r->kind = FMT_REL_TLS;
		return;
	case ELF_REL_SIZE:
		r->kind = FMT_REL_CODE;
		r->import = UINT32_MAX;
		r->value = p.size_len + addend;
		return;
	case ELF_REL_RELATIVE:
		r->kind = FMT_REL_POINTER;
		r->import = UINT32_MAX;
		r->value = r->target = addend;
		return;
	case ELF_REL_IRELATIVE:
		set_irelative(r, addend);
		return;
	case ELF_REL_GLOB:
	case ELF_REL_JUMP:
		if (p.is_ifunc) {
			set_irelative(r, p.va);
			return;
		}
		r->value = r->target = p.va + (t->has_addend ? addend : 0);
		r->kind = p.import == UINT32_MAX     ? FMT_REL_POINTER
			  : rule->op == ELF_REL_JUMP ? FMT_REL_JUMP_SLOT
						     : FMT_REL_IMPORT;
		return;
	default:
		break;
	}
	if (rule->op == ELF_REL_ABS && p.is_ifunc && !(perm & FMT_X) &&
	    r->width == elf_word_len(e)) {
		set_irelative(r, p.va + addend);
		return;
	}
	uint64_t from = rule->op == ELF_REL_GOT_PC ? e->got_va
			: rule->is_slot		   ? slot_of(e, t, raw->sym)
						   : p.va;
	r->target = from + addend;
	if (rule->is_slot && from == 0)
		r->kind = FMT_REL_OTHER;
	else if (rule->op >= ELF_REL_A64_ADR)
		set_insn(e, r, rule);
	else
		set_reference(e, r, rule, perm);
}

static uint64_t cut_to_width(uint64_t value, unsigned width)
{
	return width >= 8 ? value : value & (((uint64_t)1 << (8 * width)) - 1);
}

/* Pushing cannot fail: the room was made for all tables together. */
static void add_reloc(struct elf *e, struct rel_table *t, const struct elf_rel_rules *rules,
		      const struct raw_rel *raw)
{
	const struct elf_rel_rule *rule = elf_rel_find_rule(rules, raw->type);
	struct fmt_reloc r = {
		.va = t->base_va + raw->off,
		.import = UINT32_MAX,
		.kind = FMT_REL_NONE,
		.raw_type = (uint16_t)(raw->type > 0xffff ? 0xffff : raw->type),
	};
	r.width = (uint8_t)(rule && rule->width ? rule->width : elf_word_len(e));
	if (rule && rule->op == ELF_REL_NONE)
		return;
	if (t->is_hint &&
	    (!rule || (rule->op != ELF_REL_IRELATIVE && rule->op != ELF_REL_RELATIVE)))
		return;
	const struct fmt_segment *seg = fmt_segment_at(e->b, r.va);
	if (!seg || seg->mem_len - (r.va - seg->va) < r.width || raw->off > t->base_len ||
	    r.width > t->base_len - raw->off) {
		t->bad_place_cnt++;
		return;
	}
	if (!rule) {
		r.kind = FMT_REL_OTHER;
		report_type(e, raw->type, r.va);
	} else {
		compute(e, t, rule, raw, &r);
	}
	if (!e->is_64)
		r.target &= UINT32_MAX;
	r.value = cut_to_width(r.value, r.width);
	if (e->b->relocs.cnt < e->b->relocs.cap)
		e->b->relocs.data[e->b->relocs.cnt++] = r;
}

static void report_table(struct elf *e, const struct rel_table *t)
{
	struct findings *f = &e->b->findings;
	if (t->bad_place_cnt)
		finding_add(f, FINDING_WARNING, t->off, t->what,
			    "%u of %llu relocations are for places outside of what is mapped",
			    t->bad_place_cnt, (unsigned long long)t->cnt);
	if (t->bad_symbol_cnt)
		finding_add(f, FINDING_WARNING, t->off, t->what,
			    "%u of %llu relocations name symbols there are not", t->bad_symbol_cnt,
			    (unsigned long long)t->cnt);
}

static void read_table(struct elf *e, struct rel_table *t)
{
	const struct elf_rel_rules *rules = elf_rel_rules_of(e->machine);
	struct cur c = elf_cur(e, t->off, t->cnt * entry_len(e, t->has_addend));
	for (uint64_t i = 0; i < t->cnt; i++) {
		struct raw_rel raw = read_raw(e, &c, t->has_addend);
		if (c.failed)
			break;
		add_reloc(e, t, rules, &raw);
	}
	report_table(e, t);
}

/* Finds a table of the dynamic section in the file; `what` and `has_addend` are set already. */
static bool find_table(struct elf *e, uint64_t va, uint64_t len, bool is_quiet,
		       struct rel_table *ret)
{
	struct findings *f = &e->b->findings;
	uint64_t room;
	if (va == 0 || len == 0)
		return false;
	if (!elf_at(e, va, &ret->off, &room)) {
		if (!is_quiet)
			finding_add_va(f, FINDING_ERROR, va, ret->what,
				       "its address is not mapped from the file");
		return false;
	}
	if (len > room && !is_quiet)
		finding_add_va(f, FINDING_WARNING, va, ret->what,
			       "%llu bytes, but the segment has %llu", (unsigned long long)len,
			       (unsigned long long)room);
	len = len < room ? len : room;
	ret->syms = &e->dynsym;
	ret->cnt = len / entry_len(e, ret->has_addend);
	ret->base_len = UINT64_MAX;
	return true;
}

/* The tables of DT_RELA, DT_REL and DT_JMPREL; at most three. */
static unsigned find_tables(struct elf *e, bool is_quiet, struct rel_table ret[3])
{
	const struct elf_dyn *d = &e->dyn;
	bool plt_has_addend =
		d->pltrel ? d->pltrel == DT_RELA : d->rela != 0 || e->machine != EM_386;
	unsigned cnt = 0;
	ret[cnt] = (struct rel_table){.what = "DT_RELA", .has_addend = true};
	cnt += find_table(e, d->rela, d->relasz, is_quiet, &ret[cnt]);
	ret[cnt] = (struct rel_table){.what = "DT_REL"};
	cnt += find_table(e, d->rel, d->relsz, is_quiet, &ret[cnt]);
	ret[cnt] = (struct rel_table){.what = "DT_JMPREL", .has_addend = plt_has_addend};
	if (!find_table(e, d->jmprel, d->pltrelsz, is_quiet, &ret[cnt]))
		return cnt;
	/* On some machines the other table's size counts this one at its end too, and ld.so leaves
	 * it out there. */
	const struct rel_table *jmp = &ret[cnt];
	for (unsigned i = 0; i < cnt; i++) {
		uint32_t len = entry_len(e, ret[i].has_addend);
		if (ret[i].has_addend == jmp->has_addend && jmp->cnt <= ret[i].cnt &&
		    ret[i].off + ret[i].cnt * len == jmp->off + jmp->cnt * len)
			ret[i].cnt -= jmp->cnt;
	}
	return cnt + 1;
}

uint32_t elf_max_reloc_symbol(struct elf *e, uint64_t limit)
{
	struct rel_table tables[3];
	unsigned cnt = find_tables(e, true, tables);
	uint32_t max = 0;
	for (unsigned i = 0; i < cnt; i++) {
		struct cur c = elf_cur(e, tables[i].off,
				       tables[i].cnt * entry_len(e, tables[i].has_addend));
		for (uint64_t k = 0; k < tables[i].cnt; k++) {
			struct raw_rel raw = read_raw(e, &c, tables[i].has_addend);
			max = raw.sym > max && raw.sym < limit ? raw.sym : max;
		}
	}
	return max;
}

/*
 * RELR (gABI, "Relative relocation table"): an even word is an address, relocated itself; an odd
 * one a bit map of the word_bits - 1 words that follow the last address or map.
 */
static uint64_t walk_relr(struct elf *e, const struct rel_table *t, bool is_counting, uint32_t *bad)
{
	unsigned word = elf_word_len(e);
	struct cur c = elf_cur(e, t->off, t->cnt * word);
	uint64_t va = 0;
	uint64_t cnt = 0;
	for (uint64_t i = 0; i < t->cnt; i++) {
		uint64_t entry = cur_word(&c, word);
		uint64_t bits = entry & 1 ? entry >> 1 : 1;
		if (!(entry & 1))
			va = entry;
		cnt += (uint64_t)__builtin_popcountll(bits);
		for (uint64_t at = va; bits && !is_counting; bits >>= 1, at += word) {
			uint64_t off;
			uint64_t len;
			if (!(bits & 1))
				continue;
			if (!elf_at(e, at, &off, &len) || len < word) {
				++*bad;
				continue;
			}
			uint64_t value = e->is_64 ? load_u64(e->bytes + off, e->is_be)
						  : load_u32(e->bytes + off, e->is_be);
			struct fmt_reloc r = {.va = at,
					      .value = value,
					      .target = value,
					      .import = UINT32_MAX,
					      .kind = FMT_REL_POINTER,
					      .width = (uint8_t)word};
			if (e->b->relocs.cnt == e->b->relocs.cap)
				return cnt;
			e->b->relocs.data[e->b->relocs.cnt++] = r;
		}
		va += entry & 1 ? (uint64_t)(word * 8 - 1) * word : word;
	}
	return cnt;
}

/* Makes room for `cnt` relocations, sorted with as much scratch; what the budget does not allow is
 * dropped. */
static struct err *reserve(struct elf *e, uint64_t cnt)
{
	uint64_t cost = 2 * sizeof(struct fmt_reloc);
	if (cnt > e->mem_left / cost) {
		finding_add(&e->b->findings, FINDING_ERROR, UINT64_MAX, "relocations",
			    "only %llu of %llu are read", (unsigned long long)(e->mem_left / cost),
			    (unsigned long long)cnt);
		cnt = e->mem_left / cost;
	}
	e->mem_left -= cnt * cost;
	struct fmt_reloc *data = cnt ? alloc_array((size_t)cnt, sizeof(*data)) : NULL;
	if (cnt && !data)
		return &err_nomem;
	e->b->relocs.data = data;
	e->b->relocs.cap = (size_t)cnt;
	return NULL;
}

static struct err *load_dynamic_relocs(struct elf *e)
{
	struct rel_table tables[3];
	struct rel_table relr = {.what = "DT_RELR"};
	uint32_t bad = 0;
	unsigned cnt = find_tables(e, false, tables);
	uint64_t total = 0;
	for (unsigned i = 0; i < cnt; i++)
		total += tables[i].cnt;
	if (find_table(e, e->dyn.relr, e->dyn.relrsz, false, &relr)) {
		uint64_t off;
		uint64_t room = 0;
		elf_at(e, e->dyn.relr, &off, &room);
		relr.cnt = MIN(e->dyn.relrsz, room) / elf_word_len(e);
		total += walk_relr(e, &relr, true, &bad);
	}
	if (e->dyn.android_rel || e->dyn.android_rela)
		finding_add(&e->b->findings, FINDING_WARNING, e->dyn.off, "relocations",
			    "Android's packed form is not read");
	struct err *err = reserve(e, total);
	if (err)
		return err;
	for (unsigned i = 0; i < cnt; i++)
		read_table(e, &tables[i]);
	walk_relr(e, &relr, false, &bad);
	if (bad)
		finding_add(&e->b->findings, FINDING_WARNING, relr.off, relr.what,
			    "%u relocations are for places outside of what is mapped", bad);
	return NULL;
}

/* Programs that relocate themselves without a dynamic table (static ones their IRELATIVE words,
 * boot loaders all of them) still have the sections. */
static bool find_hint_table(const struct elf *e, uint32_t idx, struct rel_table *ret)
{
	const struct fmt_section *s = &e->b->sections.data[idx];
	if (!s->is_alloc || (s->raw_type != SHT_REL && s->raw_type != SHT_RELA))
		return false;
	bool has_addend = s->raw_type == SHT_RELA;
	*ret = (struct rel_table){.what = "relocation section",
				  .syms = &e->dynsym,
				  .off = s->file_off,
				  .cnt = s->file_len / entry_len(e, has_addend),
				  .has_addend = has_addend,
				  .base_len = UINT64_MAX,
				  .is_hint = true};
	return true;
}

static struct err *load_hinted_relocs(struct elf *e)
{
	struct rel_table t;
	uint64_t total = 0;
	for (uint32_t i = 0; i < e->b->sections.cnt; i++)
		total += find_hint_table(e, i, &t) ? t.cnt : 0;
	struct err *err = reserve(e, total);
	uint64_t left = e->b->relocs.cap;
	for (uint32_t i = 0; i < e->b->sections.cnt && !err; i++) {
		if (!find_hint_table(e, i, &t))
			continue;
		t.cnt = t.cnt < left ? t.cnt : left;
		left -= t.cnt;
		read_table(e, &t);
	}
	return err;
}

/* The relocation section `idx` of an object, when it is one for an allocated section. */
static bool find_object_table(const struct elf *e, uint32_t idx, struct rel_table *ret)
{
	struct elf_sh sh;
	if (!elf_read_sh(e, idx, &sh) || (sh.type != SHT_REL && sh.type != SHT_RELA) ||
	    e->b->sections.cnt == 0)
		return false;
	const struct fmt_section *target = elf_section(e, sh.info);
	const struct fmt_section *self = elf_section(e, idx);
	if (!target || !self || !target->is_alloc || target->mem_len == 0 ||
	    sh.link != e->symtab.sec_idx)
		return false;
	*ret = (struct rel_table){
		.what = sh.type == SHT_RELA ? "RELA section" : "REL section",
		.syms = &e->symtab,
		.off = self->file_off,
		.cnt = self->file_len / entry_len(e, sh.type == SHT_RELA),
		.has_addend = sh.type == SHT_RELA,
		.base_va = target->va,
		.base_len = target->mem_len,
	};
	return true;
}

static uint64_t count_object_relocs(const struct elf *e)
{
	uint64_t total = e->got_cnt;
	struct rel_table t;
	for (uint32_t i = 1; i < e->shnum; i++)
		total += find_object_table(e, i, &t) ? t.cnt : 0;
	return total;
}

/* Numbers the slots in the order of their first use. */
static bool plan_table(struct elf *e, const struct rel_table *t, uint64_t *left)
{
	const struct elf_rel_rules *rules = elf_rel_rules_of(e->machine);
	struct cur c = elf_cur(e, t->off, t->cnt * entry_len(e, t->has_addend));
	bool is_wanted = false;
	for (uint64_t i = 0; i < t->cnt && *left; i++, --*left) {
		struct raw_rel raw = read_raw(e, &c, t->has_addend);
		const struct elf_rel_rule *rule = elf_rel_find_rule(rules, raw.type);
		if (!rule)
			continue;
		is_wanted |=
			rule->op == ELF_REL_GOT_OFF || rule->op == ELF_REL_GOT_PC || rule->is_slot;
		if (!rule->is_slot || raw.sym == 0 || raw.sym >= t->syms->cnt)
			continue;
		uint32_t *slot = &e->got_slot[t->syms->first + raw.sym - 1];
		if (*slot == ELF_NO_INDEX)
			*slot = e->got_cnt++;
	}
	return is_wanted;
}

struct err *elf_plan_got(struct elf *e)
{
	size_t symbol_cnt = e->b->symbols.cnt;
	e->got_slot = alloc_array(symbol_cnt, sizeof(*e->got_slot));
	if (!e->got_slot)
		return &err_nomem;
	memset(e->got_slot, 0xff, symbol_cnt * sizeof(*e->got_slot));
	/* As many as load_object_relocs() can hold: hostile sections may all name the same bytes.
	 */
	uint64_t left = e->mem_left / (2 * sizeof(struct fmt_reloc));
	bool is_wanted = false;
	for (uint32_t i = 1; i < e->shnum && left; i++) {
		struct rel_table t;
		if (find_object_table(e, i, &t))
			is_wanted |= plan_table(e, &t, &left);
	}
	if (!is_wanted && e->got_cnt == 0)
		return NULL;
	uint64_t slots = e->got_cnt ? e->got_cnt : 1;
	struct err *err = elf_add_made_up(e, "GOT", slots * elf_word_len(e), FMT_R, &e->got_va);
	for (size_t i = e->symtab.first; i < symbol_cnt && e->got_va; i++) {
		struct fmt_symbol *s = &e->b->symbols.data[i];
		if (s->is_undefined && elf_is_got_name(s->name)) {
			s->va = e->got_va;
			s->is_undefined = false;
		}
	}
	return err;
}

static void fill_got(struct elf *e)
{
	struct fmt_bin *b = e->b;
	for (size_t i = e->symtab.first; e->got_va && i < b->symbols.cnt; i++) {
		if (e->got_slot[i] == ELF_NO_INDEX || b->relocs.cnt == b->relocs.cap)
			continue;
		uint64_t at = e->got_va + (uint64_t)e->got_slot[i] * elf_word_len(e);
		struct fmt_reloc r = {.va = at,
				      .import = e->import_of[i],
				      .kind = FMT_REL_POINTER,
				      .width = (uint8_t)elf_word_len(e)};
		r.value = b->symbols.data[i].va;
		if (r.import != ELF_NO_INDEX) {
			r.kind = FMT_REL_IMPORT;
			r.value = b->imports.data[r.import].va;
			b->imports.data[r.import].got_va = at;
		}
		r.target = r.value;
		b->relocs.data[b->relocs.cnt++] = r;
	}
	if (e->got_va)
		b->got = (struct fmt_range){e->got_va, (uint64_t)e->got_cnt * elf_word_len(e)};
}

static struct err *load_object_relocs(struct elf *e)
{
	struct err *err = reserve(e, count_object_relocs(e));
	if (err)
		return err;
	fill_got(e);
	uint64_t left = e->b->relocs.cap;
	for (uint32_t i = 1; i < e->shnum && left; i++) {
		struct rel_table t;
		if (!find_object_table(e, i, &t))
			continue;
		t.cnt = t.cnt < left ? t.cnt : left;
		left -= t.cnt;
		read_table(e, &t);
	}
	return NULL;
}

/* Stable merge sort by address. Tables are mostly in order, and halves that are need no move. */
static void sort_range(struct fmt_reloc *r, size_t cnt, struct fmt_reloc *scratch)
{
	if (cnt < 2)
		return;
	size_t half = cnt / 2;
	sort_range(r, half, scratch);
	sort_range(r + half, cnt - half, scratch);
	if (r[half - 1].va <= r[half].va)
		return;
	memcpy(scratch, r, half * sizeof(*r));
	size_t left = 0;
	size_t right = half;
	for (size_t i = 0; left < half; i++) {
		if (right < cnt && r[right].va < scratch[left].va)
			r[i] = r[right++];
		else
			r[i] = scratch[left++];
	}
}

/* Of many relocations for one place only the last few can matter; that they are few keeps reads
 * cheap. */
static void drop_repeats(struct fmt_bin *b)
{
	enum { REPEAT_MAX = 16 };
	struct fmt_reloc *r = b->relocs.data;
	size_t out = 0;
	for (size_t i = 0; i < b->relocs.cnt;) {
		size_t end = i;
		while (end < b->relocs.cnt && r[end].va == r[i].va)
			end++;
		if (end - i > REPEAT_MAX) {
			finding_add_va(&b->findings, FINDING_WARNING, r[i].va, "relocations",
				       "%zu are for the same place; the last %d are kept", end - i,
				       REPEAT_MAX);
			i = end - REPEAT_MAX;
		}
		while (i < end)
			r[out++] = r[i++];
	}
	b->relocs.cnt = out;
}

static struct err *sort_relocs(struct fmt_bin *b)
{
	struct fmt_reloc *scratch = alloc_array(b->relocs.cnt / 2 + 1, sizeof(*scratch));
	if (!scratch)
		return &err_nomem;
	sort_range(b->relocs.data, b->relocs.cnt, scratch);
	free(scratch);
	drop_repeats(b);
	return NULL;
}

static void note_got_slots(struct elf *e)
{
	struct fmt_bin *b = e->b;
	for (size_t i = 0; i < b->relocs.cnt; i++) {
		const struct fmt_reloc *r = &b->relocs.data[i];
		const struct elf_rel_rule *rule =
			r->import == UINT32_MAX || e->type == ET_REL
				? NULL
				: elf_rel_find_rule(elf_rel_rules_of(e->machine), r->raw_type);
		if (!rule || (rule->op != ELF_REL_GLOB && rule->op != ELF_REL_JUMP))
			continue;
		uint64_t *got_va = &b->imports.data[r->import].got_va;
		if (*got_va == 0 || rule->op == ELF_REL_JUMP)
			*got_va = r->va;
	}
}

struct err *elf_load_relocs(struct elf *e)
{
	struct err *err = e->type == ET_REL ? load_object_relocs(e)
			  : e->dyn.is_there ? load_dynamic_relocs(e)
					    : load_hinted_relocs(e);
	if (!err)
		err = sort_relocs(e->b);
	if (!err)
		note_got_slots(e);
	return err;
}
