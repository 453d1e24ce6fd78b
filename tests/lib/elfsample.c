/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/elfsample.h"

#include <elf.h>

enum { TEXT_OFF = 0x1000, TEXT_VA = 0x11000, DATA_OFF = 0x2000, DATA_VA = 0x22000, CODE_LEN = 64 };

struct machine_types {
	unsigned bits;
	bool is_be;
	uint16_t machine;
	uint32_t abs, glob, jump, relative;
};

static const struct machine_types kinds[] = {
	{64, false, EM_X86_64, R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT,
	 R_X86_64_RELATIVE},
	{32, false, EM_386, R_386_32, R_386_GLOB_DAT, R_386_JMP_SLOT, R_386_RELATIVE},
	{64, true, EM_PPC64, R_PPC64_ADDR64, R_PPC64_GLOB_DAT, R_PPC64_JMP_SLOT, R_PPC64_RELATIVE},
	{32, true, EM_PPC, R_PPC_ADDR32, R_PPC_GLOB_DAT, R_PPC_JMP_SLOT, R_PPC_RELATIVE},
};

/* Addresses of the tables, collected while the text segment is laid out. */
struct tables {
	uint64_t hash, gnu_hash, symtab, strtab, strsz, versym, verneed, verdef, rel, relsz, jmprel,
		jmprelsz, relr, relrsz;
	uint64_t dynsym_off, dynstr_off, symtab_cnt;
	uint32_t name_lib, name_self;
};

static uint64_t text_va(uint64_t off)
{
	return off - TEXT_OFF + TEXT_VA;
}

static uint64_t add_table(struct elfw *w, struct buf *b, uint64_t *ret_len)
{
	uint64_t off = elfw_add(w, b->data, b->len, 8);
	if (ret_len)
		*ret_len = b->len;
	buf_fini(b);
	return text_va(off);
}

static void add_symbols(struct elfsample *s, struct tables *t)
{
	struct elfw *w = &s->w;
	struct buf str = {0};
	struct buf sym = {0};
	t->name_lib = elfw_str(&str, "libc.so.6");
	t->name_self = elfw_str(&str, "libsample.so.1");
	uint32_t glibc = elfw_str(&str, "GLIBC_2.34");
	uint32_t own = elfw_str(&str, "OWN_1");
	elfw_symbol(w, &sym, (struct elfw_sym){0});
	elfw_symbol(w, &sym,
		    (struct elfw_sym){.name = elfw_str(&str, "puts"),
				      .info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)});
	elfw_symbol(w, &sym,
		    (struct elfw_sym){.name = elfw_str(&str, "environ"),
				      .info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT)});
	elfw_symbol(w, &sym,
		    (struct elfw_sym){.name = elfw_str(&str, "own_func"),
				      .value = s->func_va,
				      .len = 16,
				      .shndx = 1,
				      .info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)});
	elfw_symbol(w, &sym,
		    (struct elfw_sym){.name = elfw_str(&str, "own_data"),
				      .value = s->data_va,
				      .len = 8,
				      .shndx = 2,
				      .info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)});
	t->symtab_cnt = 5;
	t->symtab = add_table(w, &sym, NULL);
	t->strtab = add_table(w, &str, &t->strsz);

	struct buf versym = {0};
	static const uint16_t versions[] = {0, 2, 1, 3, 3 | 0x8000};
	for (size_t i = 0; i < 5; i++)
		elfw_u16(w, &versym, versions[i]);
	t->versym = add_table(w, &versym, NULL);

	struct buf need = {0};
	elfw_u16(w, &need, 1);
	elfw_u16(w, &need, 1);
	elfw_u32(w, &need, t->name_lib);
	elfw_u32(w, &need, 16);
	elfw_u32(w, &need, 0);
	elfw_u32(w, &need, 0);
	elfw_u16(w, &need, 0);
	elfw_u16(w, &need, 2);
	elfw_u32(w, &need, glibc);
	elfw_u32(w, &need, 0);
	t->verneed = add_table(w, &need, NULL);

	struct buf def = {0};
	elfw_u16(w, &def, 1);
	elfw_u16(w, &def, 0);
	elfw_u16(w, &def, 3);
	elfw_u16(w, &def, 1);
	elfw_u32(w, &def, 0);
	elfw_u32(w, &def, 20);
	elfw_u32(w, &def, 0);
	elfw_u32(w, &def, own);
	elfw_u32(w, &def, 0);
	t->verdef = add_table(w, &def, NULL);
}

static void add_hashes(struct elfsample *s, const struct elfsample_opts *o, struct tables *t)
{
	struct elfw *w = &s->w;
	struct buf hash = {0};
	elfw_u32(w, &hash, 1);
	elfw_u32(w, &hash, o->has_chain_lie ? o->chain_lie : (uint32_t)t->symtab_cnt);
	for (size_t i = 0; i < 1 + t->symtab_cnt; i++)
		elfw_u32(w, &hash, 0);
	t->hash = add_table(w, &hash, NULL);

	struct buf gnu = {0};
	elfw_u32(w, &gnu, 1); /* buckets */
	elfw_u32(w, &gnu, 3); /* first hashed symbol */
	elfw_u32(w, &gnu, 1); /* bloom words */
	elfw_u32(w, &gnu, 0);
	elfw_word(w, &gnu, UINT64_MAX);
	elfw_u32(w, &gnu, 3);
	elfw_u32(w, &gnu, 2); /* symbol 3: the chain goes on */
	elfw_u32(w, &gnu, 3); /* symbol 4: its end */
	t->gnu_hash = add_table(w, &gnu, NULL);
}

static void add_relocs(struct elfsample *s, const struct elfsample_opts *o, struct tables *t,
		       const struct machine_types *k)
{
	struct elfw *w = &s->w;
	struct buf rel = {0};
	struct buf jmp = {0};
	struct buf relr = {0};
	void (*put)(const struct elfw *, struct buf *, struct elfw_reloc) =
		o->use_rel ? elfw_rel : elfw_rela;
	put(w, &rel,
	    (struct elfw_reloc){
		    .off = s->pointer_va, .type = k->relative, .addend = (int64_t)s->func_va});
	put(w, &rel,
	    (struct elfw_reloc){
		    .off = s->init_array_va, .type = k->relative, .addend = (int64_t)s->init_va});
	put(w, &rel, (struct elfw_reloc){.off = s->slot_environ_va, .sym = 2, .type = k->glob});
	put(w, &rel, (struct elfw_reloc){.off = s->abs_va, .sym = 4, .type = k->abs, .addend = 4});
	put(w, &jmp, (struct elfw_reloc){.off = s->slot_puts_va, .sym = 1, .type = k->jump});
	elfw_word(w, &relr, s->relr_va);
	elfw_word(w, &relr, 3); /* a bit map: the word after it too */
	t->rel = add_table(w, &rel, &t->relsz);
	t->jmprel = add_table(w, &jmp, &t->jmprelsz);
	t->relr = add_table(w, &relr, &t->relrsz);
}

static void put_dyn(const struct elfsample_opts *o, struct elfsample *s, struct buf *b,
		    uint64_t tag, uint64_t value)
{
	elfw_dyn(&s->w, b, tag,
		 o->override_tag && o->override_tag == tag ? o->override_value : value);
}

static void add_dynamic(struct elfsample *s, const struct elfsample_opts *o, const struct tables *t)
{
	struct buf d = {0};
	bool rela = !o->use_rel;
	unsigned word = o->bits / 8;
	put_dyn(o, s, &d, DT_NEEDED, t->name_lib);
	put_dyn(o, s, &d, DT_SONAME, t->name_self);
	put_dyn(o, s, &d, DT_SYMTAB, t->symtab);
	put_dyn(o, s, &d, DT_STRTAB, t->strtab);
	put_dyn(o, s, &d, DT_STRSZ, t->strsz);
	if (o->has_hash)
		put_dyn(o, s, &d, DT_HASH, t->hash);
	if (o->has_gnu_hash)
		put_dyn(o, s, &d, DT_GNU_HASH, t->gnu_hash);
	put_dyn(o, s, &d, DT_VERSYM, t->versym);
	put_dyn(o, s, &d, DT_VERNEED, t->verneed);
	put_dyn(o, s, &d, DT_VERNEEDNUM, 1);
	put_dyn(o, s, &d, DT_VERDEF, t->verdef);
	put_dyn(o, s, &d, DT_VERDEFNUM, 1);
	put_dyn(o, s, &d, rela ? DT_RELA : DT_REL, t->rel);
	put_dyn(o, s, &d, rela ? DT_RELASZ : DT_RELSZ, t->relsz);
	put_dyn(o, s, &d, DT_JMPREL, t->jmprel);
	put_dyn(o, s, &d, DT_PLTRELSZ, t->jmprelsz);
	put_dyn(o, s, &d, DT_PLTREL, rela ? DT_RELA : DT_REL);
	put_dyn(o, s, &d, 36, t->relr);
	put_dyn(o, s, &d, 35, t->relrsz);
	put_dyn(o, s, &d, DT_INIT, s->init_va);
	put_dyn(o, s, &d, DT_INIT_ARRAY, s->init_array_va);
	put_dyn(o, s, &d, DT_INIT_ARRAYSZ, 2 * word);
	put_dyn(o, s, &d, DT_PLTGOT, s->slot_puts_va);
	put_dyn(o, s, &d, DT_NULL, 0);
	s->dyn_off = elfw_add(&s->w, d.data, d.len, 8);
	buf_fini(&d);
}

/* The words the relocations patch: what REL and RELR take as the addend stands in them. */
static void add_data(struct elfsample *s, const struct elfsample_opts *o)
{
	struct buf b = {0};
	const struct elfw *w = &s->w;
	elfw_word(w, &b, 0);			       /* slot of puts */
	elfw_word(w, &b, 0);			       /* slot of environ */
	elfw_word(w, &b, o->use_rel ? s->func_va : 0); /* pointer */
	elfw_word(w, &b, o->use_rel ? 4 : 0);	       /* abs */
	elfw_word(w, &b, o->use_rel ? s->init_va : 0); /* init array */
	elfw_word(w, &b, UINT64_MAX);		       /* its second, empty entry */
	elfw_word(w, &b, s->func_va);		       /* relr */
	elfw_word(w, &b, s->init_va);
	elfw_word(w, &b, 0x1122334455667788); /* own_data */
	elfw_add(&s->w, b.data, b.len, 1);
	buf_fini(&b);
}

static void place_data(struct elfsample *s, unsigned word)
{
	s->slot_puts_va = DATA_VA;
	s->slot_environ_va = DATA_VA + word;
	s->pointer_va = DATA_VA + 2 * word;
	s->abs_va = DATA_VA + 3 * word;
	s->init_array_va = DATA_VA + 4 * word;
	s->relr_va = DATA_VA + 6 * word;
	s->data_va = DATA_VA + 8 * word;
	s->func_va = TEXT_VA;
	s->init_va = TEXT_VA + 32;
}

static void add_sections(struct elfsample *s, const struct tables *t, uint64_t data_len)
{
	struct elfw *w = &s->w;
	unsigned sym_len = w->bits == 64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct buf sym = {0};
	struct buf str = {0};
	elfw_symbol(w, &sym, (struct elfw_sym){0});
	elfw_symbol(w, &sym,
		    (struct elfw_sym){.name = elfw_str(&str, "local_func"),
				      .value = s->init_va,
				      .len = 8,
				      .shndx = 1,
				      .info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC)});
	elfw_symbol(w, &sym,
		    (struct elfw_sym){.name = elfw_str(&str, "puts@GLIBC_2.34"),
				      .info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)});
	elfw_add_sec(w, (struct elfw_sec){.name = ".text",
					  .type = SHT_PROGBITS,
					  .flags = SHF_ALLOC | SHF_EXECINSTR,
					  .addr = TEXT_VA,
					  .off = TEXT_OFF,
					  .len = CODE_LEN,
					  .align = 16});
	elfw_add_sec(w, (struct elfw_sec){.name = ".data",
					  .type = SHT_PROGBITS,
					  .flags = SHF_ALLOC | SHF_WRITE,
					  .addr = DATA_VA,
					  .off = DATA_OFF,
					  .len = data_len,
					  .align = 8});
	elfw_add_sec(w, (struct elfw_sec){.name = ".dynsym",
					  .type = SHT_DYNSYM,
					  .flags = SHF_ALLOC,
					  .addr = t->symtab,
					  .off = t->symtab - TEXT_VA + TEXT_OFF,
					  .len = 5 * sym_len,
					  .link = 4,
					  .ent_len = sym_len});
	elfw_add_sec(w, (struct elfw_sec){.name = ".dynstr",
					  .type = SHT_STRTAB,
					  .flags = SHF_ALLOC,
					  .addr = t->strtab,
					  .off = t->strtab - TEXT_VA + TEXT_OFF,
					  .len = t->strsz});
	uint64_t sym_off = elfw_add(w, sym.data, sym.len, 8);
	uint64_t str_off = elfw_add(w, str.data, str.len, 1);
	elfw_add_sec(w, (struct elfw_sec){.name = ".symtab",
					  .type = SHT_SYMTAB,
					  .off = sym_off,
					  .len = sym.len,
					  .link = 6,
					  .info = 2,
					  .ent_len = sym_len});
	elfw_add_sec(
		w, (struct elfw_sec){
			   .name = ".strtab", .type = SHT_STRTAB, .off = str_off, .len = str.len});
	buf_fini(&sym);
	buf_fini(&str);
}

void elfsample_library(const struct elfsample_opts *o, struct elfsample *ret)
{
	const struct machine_types *k = kinds;
	while (k->bits != o->bits || k->is_be != o->is_be)
		k++;
	*ret = (struct elfsample){.text_off = TEXT_OFF};
	struct elfw *w = &ret->w;
	struct tables t = {0};
	elfw_init(w, o->bits, o->is_be, ET_DYN, k->machine);
	place_data(ret, o->bits / 8);
	elfw_pad_to(w, TEXT_OFF + CODE_LEN);
	add_symbols(ret, &t);
	add_hashes(ret, o, &t);
	add_relocs(ret, o, &t, k);
	uint64_t text_len = w->file.len - TEXT_OFF;
	elfw_pad_to(w, DATA_OFF);
	add_data(ret, o);
	add_dynamic(ret, o, &t);
	uint64_t data_len = w->file.len - DATA_OFF;
	elfw_add_seg(w, (struct elfw_seg){PT_LOAD, PF_R | PF_X, TEXT_OFF, TEXT_VA, text_len,
					  text_len, 0x1000});
	elfw_add_seg(w, (struct elfw_seg){PT_LOAD, PF_R | PF_W, DATA_OFF, DATA_VA, data_len,
					  data_len + 0x100, 0x1000});
	elfw_add_seg(w, (struct elfw_seg){PT_DYNAMIC, PF_R | PF_W, ret->dyn_off,
					  DATA_VA + ret->dyn_off - DATA_OFF,
					  DATA_OFF + data_len - ret->dyn_off,
					  DATA_OFF + data_len - ret->dyn_off, 8});
	if (o->has_sections)
		add_sections(ret, &t, data_len);
	elfw_finish(w);
}
