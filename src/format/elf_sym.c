/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols and imports. The dynamic table has no length of its own: the hash tables say it, else the
 * relocations that use it. The static table is known from the section headers only.
 */
#include "format/elf_int.h"

#include <elf.h>

enum { EXTERN_SLOT_LEN = 16 };

static uint32_t symbol_len(const struct elf *e)
{
	return e->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

/* DT_HASH: the number of chains is the number of symbols. */
static uint32_t count_by_hash(const struct elf *e)
{
	uint64_t off;
	uint64_t len;
	bool is_wide = e->is_64 && (e->machine == EM_ALPHA || e->machine == EM_S390);
	if (e->dyn.hash == 0 || !elf_at(e, e->dyn.hash, &off, &len))
		return 0;
	struct cur c = elf_cur(e, off, len);
	uint64_t buckets = cur_word(&c, is_wide ? 8 : 4);
	uint64_t chains = cur_word(&c, is_wide ? 8 : 4);
	/* The words behind the two counts must be there. */
	uint64_t words = cur_left(&c) / (is_wide ? 8 : 4);
	return c.failed || buckets > words || chains > words - buckets ? 0 : (uint32_t)chains;
}

/* DT_GNU_HASH: the chain of the highest bucket ends with the last symbol. A table that finds
 * nothing says only how many symbols it leaves out, which linkers do not fill in: `ret_is_empty`.
 */
static uint32_t count_by_gnu_hash(const struct elf *e, bool *ret_is_empty)
{
	*ret_is_empty = true;
	uint64_t off;
	uint64_t len;
	if (e->dyn.gnu_hash == 0 || !elf_at(e, e->dyn.gnu_hash, &off, &len))
		return 0;
	struct cur c = elf_cur(e, off, len);
	uint32_t buckets = cur_u32(&c);
	uint32_t first = cur_u32(&c);
	uint32_t bloom = cur_u32(&c);
	cur_u32(&c);
	cur_skip(&c, (uint64_t)bloom * elf_word_len(e));
	if (c.failed || buckets > cur_left(&c) / 4)
		return 0;
	uint32_t last = 0;
	for (uint32_t i = 0; i < buckets; i++) {
		uint32_t bucket = cur_u32(&c);
		last = bucket > last ? bucket : last;
	}
	if (last < first)
		return first;
	*ret_is_empty = false;
	cur_skip(&c, (uint64_t)(last - first) * 4);
	while (!c.failed && last < UINT32_MAX) {
		uint32_t hash = cur_u32(&c);
		last++;
		if (hash & 1)
			break;
	}
	return c.failed ? 0 : last;
}

/* The section that describes the table, when there is one that agrees with the dynamic table. */
static uint32_t count_by_section(struct elf *e)
{
	for (uint32_t i = 0; i < e->b->sections.cnt; i++) {
		const struct fmt_section *s = &e->b->sections.data[i];
		if (s->raw_type == SHT_DYNSYM && s->va == e->dyn.symtab) {
			e->dynsym.sec_idx = i + 1;
			uint64_t cnt = s->file_len / symbol_len(e);
			return cnt > UINT32_MAX ? UINT32_MAX : (uint32_t)cnt;
		}
	}
	return 0;
}

/* A hash table too short for the symbols that relocations use is no trouble for the run-time
 * linker, which only indexes the table; the section is asked when no hash table knows. */
static uint32_t count_dynsym(struct elf *e, uint64_t fit)
{
	bool is_empty;
	uint32_t by_section = count_by_section(e);
	uint32_t by_hash = count_by_hash(e);
	uint32_t by_gnu = count_by_gnu_hash(e, &is_empty);
	uint32_t by_reloc = elf_max_reloc_symbol(e, fit < UINT32_MAX ? fit : UINT32_MAX) + 1;
	uint32_t says = by_hash > by_gnu ? by_hash : by_gnu;
	if (by_hash == 0 && is_empty && by_section > says)
		says = by_section;
	return by_reloc > says ? by_reloc : says;
}

static void find_dynsym(struct elf *e)
{
	uint64_t room;
	struct elf_symtab *t = &e->dynsym;
	if (e->dyn.symtab == 0)
		return;
	if (!elf_at(e, e->dyn.symtab, &t->off, &room)) {
		finding_add_va(&e->b->findings, FINDING_ERROR, e->dyn.symtab, "dynamic symbols",
			       "the table's address is not mapped from the file");
		return;
	}
	if (e->dyn.strtab > e->dyn.symtab && e->dyn.strtab - e->dyn.symtab < room)
		room = e->dyn.strtab - e->dyn.symtab;
	uint64_t fit = room / symbol_len(e);
	uint32_t says = count_dynsym(e, fit);
	if (says > fit) {
		finding_add_va(&e->b->findings, FINDING_WARNING, e->dyn.symtab, "dynamic symbols",
			       "%u symbols, but there is room for %llu", says,
			       (unsigned long long)fit);
		says = (uint32_t)fit;
	}
	t->cnt = says;
}

static void find_symtab(struct elf *e)
{
	struct elf_symtab *t = &e->symtab;
	struct elf_sh sh;
	struct elf_sh str;
	for (uint32_t i = 1; i < e->shnum && t->sec_idx == ELF_NO_INDEX; i++) {
		if (elf_read_sh(e, i, &sh) && sh.type == SHT_SYMTAB)
			t->sec_idx = i;
	}
	e->b->is_stripped = t->sec_idx == ELF_NO_INDEX;
	if (e->b->is_stripped || !elf_read_sh(e, t->sec_idx, &sh) || sh.off >= e->len)
		return;
	uint64_t len = sh.len < e->len - sh.off ? sh.len : e->len - sh.off;
	uint64_t cnt = len / symbol_len(e);
	t->off = sh.off;
	t->cnt = cnt > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)cnt;
	if (elf_read_sh(e, sh.link, &str) && str.off < e->len)
		t->str = (struct elf_strtab){
			str.off, str.len < e->len - str.off ? str.len : e->len - str.off};
	else
		finding_add(&e->b->findings, FINDING_WARNING, sh.off, ".symtab",
			    "its string table is missing");
	for (uint32_t i = 1; i < e->shnum; i++) {
		if (!elf_read_sh(e, i, &sh) || sh.type != SHT_SYMTAB_SHNDX ||
		    sh.link != t->sec_idx || sh.off >= e->len)
			continue;
		len = sh.len < e->len - sh.off ? sh.len : e->len - sh.off;
		t->shndx_off = sh.off;
		t->shndx_cnt = (uint32_t)(len / 4 < UINT32_MAX ? len / 4 : UINT32_MAX);
		break;
	}
}

static enum fmt_sym_type symbol_type(uint8_t info)
{
	switch (info & 15) {
	case STT_OBJECT:
		return FMT_SYM_OBJECT;
	case STT_FUNC:
		return FMT_SYM_FUNC;
	case STT_SECTION:
		return FMT_SYM_SECTION;
	case STT_FILE:
		return FMT_SYM_FILE;
	case STT_COMMON:
		return FMT_SYM_COMMON;
	case STT_TLS:
		return FMT_SYM_TLS;
	case STT_GNU_IFUNC:
		return FMT_SYM_IFUNC;
	default:
		return FMT_SYM_NONE;
	}
}

static enum fmt_sym_bind symbol_bind(uint8_t info)
{
	switch (info >> 4) {
	case STB_LOCAL:
		return FMT_BIND_LOCAL;
	case STB_WEAK:
		return FMT_BIND_WEAK;
	default:
		return FMT_BIND_GLOBAL;
	}
}

/* "$x", "$d.5": AAELF64 4.5.4 and its like; where code and data begin, not names. */
static bool is_mapping_name(const struct elf *e, const struct fmt_symbol *s)
{
	if (e->machine != EM_AARCH64 && e->machine != EM_ARM && e->machine != EM_RISCV)
		return false;
	return s->name.len >= 2 && s->name.s[0] == '$' && strchr("xdat", s->name.s[1]) &&
	       (s->name.len == 2 || s->name.s[2] == '.' || e->machine == EM_RISCV) &&
	       s->type == FMT_SYM_NONE && s->bind == FMT_BIND_LOCAL;
}

/* Linkers write "puts@GLIBC_2.2.5" and "foo@@V1" into the static table. */
static void split_version(struct fmt_symbol *s)
{
	const char *at = s->name.len > 1 ? memchr(s->name.s + 1, '@', s->name.len - 1) : NULL;
	if (!at)
		return;
	uint32_t name_len = (uint32_t)(at - s->name.s);
	uint32_t skip = name_len + 1;
	s->is_default_version = skip < s->name.len && s->name.s[skip] == '@';
	skip += s->is_default_version;
	if (skip < s->name.len)
		s->version = (struct fmt_str){s->name.s + skip, s->name.len - skip};
	s->name.len = name_len;
}

static void set_dynamic_version(struct elf *e, struct fmt_symbol *s, uint16_t versym)
{
	uint16_t idx = versym & 0x7fff;
	if (idx < 2 || idx >= e->version_cnt || !e->versions[idx].is_there)
		return;
	s->version = e->versions[idx].name;
	s->library = e->versions[idx].library;
	s->is_default_version = !s->is_undefined && !s->library.s && !(versym & 0x8000);
}

/* Objects: the symbol's address from its section. Everywhere: thread-local ones are offsets into a
 * template. */
static void set_address(struct elf *e, struct fmt_symbol *s, uint64_t value, uint32_t shndx)
{
	if (s->is_undefined)
		return;
	s->va = value;
	if (e->type == ET_REL && !s->is_absolute) {
		const struct fmt_section *sec = elf_section(e, shndx);
		s->va = sec && sec->is_alloc ? sec->va + value : 0;
	} else if (s->type == FMT_SYM_TLS) {
		s->va = value < e->tls_file_len ? e->tls_va + value : 0;
	}
	if (!e->is_64)
		s->va &= UINT32_MAX;
}

struct raw_symbol {
	uint32_t name;
	uint8_t info, other;
	uint16_t shndx;
	uint64_t value, size;
};

static struct raw_symbol read_raw(const struct elf *e, struct cur *c)
{
	struct raw_symbol r;
	r.name = cur_u32(c);
	if (e->is_64) {
		r.info = cur_u8(c);
		r.other = cur_u8(c);
		r.shndx = cur_u16(c);
		r.value = cur_u64(c);
		r.size = cur_u64(c);
	} else {
		r.value = cur_u32(c);
		r.size = cur_u32(c);
		r.info = cur_u8(c);
		r.other = cur_u8(c);
		r.shndx = cur_u16(c);
	}
	return r;
}

static void add_symbol(struct elf *e, const struct elf_symtab *t, const struct raw_symbol *r,
		       uint32_t shndx)
{
	struct fmt_symbol s = {
		.name = elf_str(e, &t->str, r->name),
		.size_len = r->size,
		.type = (uint8_t)symbol_type(r->info),
		.bind = (uint8_t)symbol_bind(r->info),
		.visibility = r->other & 3,
		.is_dynamic = t == &e->dynsym,
		.is_undefined = r->shndx == SHN_UNDEF,
		.is_absolute = r->shndx == SHN_ABS,
	};
	if (r->shndx == SHN_COMMON)
		s.type = FMT_SYM_COMMON;
	if (s.type == FMT_SYM_SECTION && s.name.len == 0) {
		const struct fmt_section *sec = elf_section(e, shndx);
		s.name = sec ? sec->name : s.name;
	}
	set_address(e, &s, r->value, shndx);
	if (s.type == FMT_SYM_COMMON && e->type == ET_REL) {
		s.va = r->value; /* the alignment, until elf_load_imports() places it */
		s.is_undefined = false;
	}
	s.is_mapping = is_mapping_name(e, &s);
	if (!s.is_dynamic)
		split_version(&s);
	s.is_exported = s.is_dynamic && !s.is_undefined && s.bind != FMT_BIND_LOCAL &&
			(s.visibility == STV_DEFAULT || s.visibility == STV_PROTECTED);
	e->b->symbols.data[e->b->symbols.cnt++] = s;
}

static void read_table(struct elf *e, struct elf_symtab *t)
{
	uint32_t len = symbol_len(e);
	t->first = (uint32_t)e->b->symbols.cnt;
	struct cur c = elf_cur(e, t->off, (uint64_t)t->cnt * len);
	struct cur shndx = elf_cur(e, t->shndx_off, (uint64_t)t->shndx_cnt * 4);
	struct cur versym = {.failed = true};
	uint64_t off;
	uint64_t room;
	if (t == &e->dynsym && e->version_cnt && elf_at(e, e->dyn.versym, &off, &room))
		versym = elf_cur(e, off, room < (uint64_t)t->cnt * 2 ? room : (uint64_t)t->cnt * 2);
	cur_skip(&c, len);
	cur_skip(&versym, 2);
	for (uint32_t i = 1; i < t->cnt; i++) {
		struct raw_symbol r = read_raw(e, &c);
		if (c.failed)
			break;
		uint32_t sec = r.shndx;
		if (r.shndx == SHN_XINDEX) {
			cur_seek(&shndx, (uint64_t)i * 4);
			sec = cur_u32(&shndx);
		} else if (r.shndx >= SHN_LORESERVE) {
			sec = 0;
		}
		add_symbol(e, t, &r, sec);
		uint16_t version = cur_u16(&versym);
		if (!versym.failed)
			set_dynamic_version(e, &e->b->symbols.data[e->b->symbols.cnt - 1], version);
	}
}

/* Cuts a table to what the memory budget allows. A symbol costs its record and two index words. */
static void fit_table(struct elf *e, struct elf_symtab *t, const char *what)
{
	uint64_t cost =
		sizeof(struct fmt_symbol) + sizeof(struct fmt_import) + 2 * sizeof(uint32_t);
	if (elf_take(e, (uint64_t)t->cnt * cost))
		return;
	uint32_t room = (uint32_t)(e->mem_left / cost);
	finding_add(&e->b->findings, FINDING_ERROR, t->off, what, "only %u of %u are read", room,
		    t->cnt);
	t->cnt = room;
	e->mem_left -= room * cost;
}

struct err *elf_load_symbols(struct elf *e)
{
	struct fmt_bin *b = e->b;
	find_symtab(e);
	if (e->type != ET_REL)
		find_dynsym(e);
	fit_table(e, &e->dynsym, "dynamic symbols");
	fit_table(e, &e->symtab, ".symtab");
	uint64_t cnt = (uint64_t)e->dynsym.cnt + e->symtab.cnt;
	if (cnt >= UINT32_MAX)
		return err_new(ERR_BUDGET, "more than 2^32 symbols");
	if (!VEC_RESERVE(&b->symbols, (size_t)cnt))
		return &err_nomem;
	read_table(e, &e->dynsym);
	read_table(e, &e->symtab);
	return NULL;
}

/* Uninitialised data that only a linker would place. */
static struct err *place_commons(struct elf *e)
{
	struct fmt_bin *b = e->b;
	uint64_t used = 0;
	for (int pass = 0; pass < 2; pass++) {
		uint64_t at = 0;
		for (size_t i = e->symtab.first; i < b->symbols.cnt; i++) {
			struct fmt_symbol *s = &b->symbols.data[i];
			if (s->type != FMT_SYM_COMMON)
				continue;
			if (pass == 1 && e->common_va == 0) {
				s->va = 0;
				continue;
			}
			uint64_t align = s->va && s->va <= ELF_PAGE_LEN && !(s->va & (s->va - 1))
						 ? s->va
						 : 1;
			at = (at + align - 1) & ~(align - 1);
			if (pass == 1)
				s->va = e->common_va + at;
			at += s->size_len < UINT32_MAX / 2 ? s->size_len : 0;
		}
		used = at;
		if (pass == 0 && used) {
			struct err *err =
				elf_add_made_up(e, "COMMON", used, FMT_R | FMT_W, &e->common_va);
			if (err)
				return err;
		}
	}
	return NULL;
}

bool elf_is_got_name(struct fmt_str name)
{
	static const char got[] = "_GLOBAL_OFFSET_TABLE_";
	return name.len == sizeof(got) - 1 && memcmp(name.s, got, sizeof(got) - 1) == 0;
}

static bool is_import(const struct elf *e, const struct fmt_symbol *s)
{
	return s->is_undefined && s->name.len && !(e->type == ET_REL && elf_is_got_name(s->name));
}

static struct err *find_imports(struct elf *e, size_t from, size_t to)
{
	struct fmt_bin *b = e->b;
	e->import_of = alloc_array(b->symbols.cnt, sizeof(*e->import_of));
	if (!e->import_of)
		return &err_nomem;
	memset(e->import_of, 0xff, b->symbols.cnt * sizeof(*e->import_of));
	size_t cnt = 0;
	for (size_t i = from; i < to; i++)
		cnt += is_import(e, &b->symbols.data[i]);
	if (cnt && !VEC_RESERVE(&b->imports, cnt))
		return &err_nomem;
	for (size_t i = from; i < to; i++) {
		if (!is_import(e, &b->symbols.data[i]))
			continue;
		e->import_of[i] = (uint32_t)b->imports.cnt;
		b->imports.data[b->imports.cnt++] = (struct fmt_import){.symbol = (uint32_t)i};
	}
	return NULL;
}

struct err *elf_load_imports(struct elf *e)
{
	struct fmt_bin *b = e->b;
	bool is_object = e->type == ET_REL;
	struct err *err = find_imports(e, is_object ? e->symtab.first : e->dynsym.first,
				       is_object ? b->symbols.cnt : e->symtab.first);
	if (!err && is_object)
		err = place_commons(e);
	if (!err && is_object)
		err = elf_plan_got(e);
	if (err || b->imports.cnt == 0)
		return err;
	uint64_t va;
	err = elf_add_made_up(e, "extern", b->imports.cnt * EXTERN_SLOT_LEN, 0, &va);
	for (size_t i = 0; i < b->imports.cnt && va; i++)
		b->imports.data[i].va = va + i * EXTERN_SLOT_LEN;
	return err;
}
