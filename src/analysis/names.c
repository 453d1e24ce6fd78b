/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

#include "arch/arch.h"

/*
 * What names tell: import stubs take the name of what they jump to, the start-up code names main,
 * and some names are known never to return.
 */

/* Sorted. Names of C, C++, Rust and Go runtimes whose documentation says that they do not return.
 */
static const char *const noreturn_names[] = {
	"_Exit",
	"_Unwind_Resume",
	"_ZSt10unexpectedv",
	"_ZSt16__throw_bad_castv",
	"_ZSt17__throw_bad_allocv",
	"_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
	"_ZSt18__throw_bad_typeidv",
	"_ZSt19__throw_ios_failurePKc",
	"_ZSt19__throw_range_errorPKc",
	"_ZSt20__throw_domain_errorPKc",
	"_ZSt20__throw_future_errori",
	"_ZSt20__throw_length_errorPKc",
	"_ZSt20__throw_out_of_rangePKc",
	"_ZSt20__throw_system_errori",
	"_ZSt21__throw_bad_exceptionv",
	"_ZSt21__throw_runtime_errorPKc",
	"_ZSt22__throw_overflow_errorPKc",
	"_ZSt23__throw_underflow_errorPKc",
	"_ZSt24__throw_invalid_argumentPKc",
	"_ZSt24__throw_out_of_range_fmtPKcz",
	"_ZSt25__throw_bad_function_callv",
	"_ZSt28__throw_bad_array_new_lengthv",
	"_ZSt9terminatev",
	"__assert",
	"__assert_fail",
	"__assert_perror_fail",
	"__assert_rtn",
	"__chk_fail",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_call_terminate",
	"__cxa_call_unexpected",
	"__cxa_deleted_virtual",
	"__cxa_pure_virtual",
	"__cxa_rethrow",
	"__cxa_throw",
	"__cxa_throw_bad_array_length",
	"__cxa_throw_bad_array_new_length",
	"__fortify_fail",
	"__libc_fatal",
	"__libc_start_main",
	"__longjmp_chk",
	"__pthread_unwind",
	"__pthread_unwind_next",
	"__rust_start_panic",
	"__siglongjmp_chk",
	"__stack_chk_fail",
	"__stack_chk_fail_local",
	"__stack_smash_handler",
	"__ubsan_handle_builtin_unreachable",
	"__ubsan_handle_missing_return",
	"_dl_fatal_printf",
	"_dl_signal_error",
	"_exit",
	"_gfortran_os_error",
	"_gfortran_runtime_error",
	"_gfortran_runtime_error_at",
	"_gfortran_stop_numeric",
	"_gfortran_stop_string",
	"_longjmp",
	"abort",
	"abort_message",
	"err",
	"errx",
	"exit",
	"g_assert_warning",
	"g_assertion_message",
	"g_assertion_message_expr",
	"longjmp",
	"pthread_exit",
	"quick_exit",
	"rt0_go",
	"runtime.abort",
	"runtime.badmorestackg0",
	"runtime.dieFromSignal",
	"runtime.exit",
	"runtime.fatalpanic",
	"runtime.fatalthrow",
	"runtime.goPanicIndex",
	"runtime.goPanicSlice3Acap",
	"runtime.goPanicSliceAcap",
	"runtime.goPanicSliceAlen",
	"runtime.goPanicSliceB",
	"runtime.goexit0",
	"runtime.gopanic",
	"runtime.panicIndex",
	"runtime.panicIndexU",
	"runtime.panicSlice3Acap",
	"runtime.panicSlice3Alen",
	"runtime.panicSlice3B",
	"runtime.panicSlice3C",
	"runtime.panicSliceAcap",
	"runtime.panicSliceAcapU",
	"runtime.panicSliceAlen",
	"runtime.panicSliceAlenU",
	"runtime.panicSliceB",
	"runtime.panicSliceBU",
	"runtime.panicSliceConvert",
	"runtime.panicdivide",
	"runtime.panicdottypeE",
	"runtime.panicdottypeI",
	"runtime.panicfloat",
	"runtime.panicmakeslicecap",
	"runtime.panicmakeslicelen",
	"runtime.panicmem",
	"runtime.panicmemAddr",
	"runtime.panicnil",
	"runtime.panicnildottype",
	"runtime.panicoverflow",
	"runtime.panicshift",
	"runtime.panicunsafeslicelen",
	"runtime.panicwrap",
	"runtime.throw",
	"rust_begin_unwind",
	"rust_panic",
	"siglongjmp",
	"svc_exit",
	"thrd_exit",
	"verr",
	"verrx",
	"xabort",
};

/* Pieces of Rust symbols, in either mangling, of functions of type `!`. */
static const char *const noreturn_pieces[] = {
	"core9panicking",
	"std9panicking11begin_panic",
	"std9panicking20rust_panic",
	"core6option13expect_failed",
	"core6result13unwrap_failed",
	"slice_index_len_fail",
	"slice_start_index_len_fail",
	"slice_end_index_len_fail",
	"slice_index_order_fail",
	"core3str16slice_error_fail",
	"alloc5alloc18handle_alloc_error",
	"raw_vec17capacity_overflow",
	"std7process4exit",
	"std7process5abort",
	"copy_from_slice17len_mismatch_fail",
	"core4cell22panic_already_borrowed",
	"alloc7raw_vec12handle_error",
	"std3sys4unix14abort_internal",
};

/* Functions of core::panicking that do return or take a closure: none of these is `!`. */
static bool piece_is_false(const char *s, size_t len)
{
	return memmem(s, len, "panic_count", 11) || memmem(s, len, "try", 3) ||
	       memmem(s, len, "AssertKind", 10);
}

bool code_name_is_noreturn(const char *s, size_t len)
{
	size_t lo = 0, hi = ARRAY_LEN(noreturn_names);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = strncmp(noreturn_names[mid], s, len);
		if (!order && noreturn_names[mid][len])
			order = 1;
		if (!order)
			return true;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!s || len < 20 || s[0] != '_' || (s[1] != 'Z' && s[1] != 'R'))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(noreturn_pieces); i++)
		if (memmem(s, len, noreturn_pieces[i], strlen(noreturn_pieces[i])))
			return !piece_is_false(s, len);
	return false;
}

static bool map_slot(struct code *c, uint32_t loc, uint32_t import)
{
	return loc == LOC_NONE || map_put(&c->got, loc, import);
}

/* Slots of imports: the GOT entry the format names, the made-up address, and every other word bound
 * to it. */
struct err *code_imports(struct code *c)
{
	const struct image_data *d = c->d;
	c->import_noreturn = alloc_array(bits_words(d->imports.cnt) + 1, sizeof(uint64_t));
	if (!c->import_noreturn)
		return &err_nomem;
	uint32_t extern_from = LOC_NONE;
	for (size_t i = 0; i < d->segs.cnt; i++)
		if (d->segs.data[i].is_extern)
			extern_from = d->segs.data[i].loc;
	for (uint32_t i = 0; i < d->imports.cnt; i++) {
		const struct image_import *imp = &d->imports.data[i];
		if (!map_slot(c, imp->loc, i) || !map_slot(c, imp->got_loc, i))
			return &err_nomem;
		if (imp->symbol >= d->symbols.cnt)
			continue;
		struct image_str name = d->symbols.data[imp->symbol].name;
		if (name.len && code_name_is_noreturn(d->pool.data + name.off, name.len))
			bits_set(c->import_noreturn, i);
	}
	const struct space *s = &d->space;
	for (uint32_t i = 0; i < s->reloc_cnt && extern_from != LOC_NONE; i++) {
		uint32_t import;
		if (s->reloc_kind[i] & (SPACE_REL_WIDE | SPACE_REL_CODE) ||
		    s->reloc_val[i] < extern_from)
			continue;
		if (map_find(&c->got, s->reloc_val[i], &import) &&
		    !map_put(&c->got, s->reloc_loc[i], import))
			return &err_nomem;
	}
	return NULL;
}

/* Where the stub that ends with the jump `r` begins: behind the previous stub's end or padding. */
static uint32_t stub_start(const struct code *c, const struct code_rec *r)
{
	uint32_t start = r->loc;
	for (unsigned i = 0; i < 4; i++) {
		uint32_t q = code_insn_before(c, start);
		if (q == CODE_NONE || !code_in_plt(c, q) || code_has(c, c->pads, q) ||
		    code_has(c, c->rec_bits, q))
			break;
		/* Where instructions have no fixed size, a stub is the jump and perhaps a landing
		 * mark before it. */
		bool is_fixed = c->arch->min_len == c->arch->max_len;
		size_t len;
		const uint8_t *p = space_bytes(&c->d->space, q, &len);
		struct arch_insn in = {0};
		if (!is_fixed && p)
			c->arch->decode(c->arch, p, len, space_va(&c->d->space, q), &in);
		if (!is_fixed && !(in.flags & ARCH_INSN_LANDING))
			break;
		start = q;
		if (in.flags & ARCH_INSN_LANDING)
			break;
	}
	return start;
}

/* The import a stub's jump through register + offset reaches when the register holds the GOT's
 * address. */
static uint32_t import_by_got_base(const struct code *c, const struct code_rec *r)
{
	if (c->arch->bits != 32)
		return CODE_NONE;
	size_t len;
	const uint8_t *p = space_bytes(&c->d->space, r->loc, &len);
	struct arch_effect e;
	if (!p)
		return CODE_NONE;
	c->arch->effect(c->arch, p, len, space_va(&c->d->space, r->loc), &e);
	if (e.op != ARCH_OP_LOAD || e.base == ARCH_REG_NONE || e.index != ARCH_REG_NONE)
		return CODE_NONE;
	for (size_t i = 0; i < c->gots.cnt; i++) {
		uint64_t va = space_va(&c->d->space, c->gots.data[i].from) + (uint64_t)e.imm;
		uint32_t import = code_import_of(c, space_loc(&c->d->space, (uint32_t)va));
		if (import != CODE_NONE)
			return import;
	}
	return CODE_NONE;
}

/* The same for stubs that make the slot's address in several instructions: what the jump's register
 * then holds. */
static uint32_t import_by_track(const struct code *c, const struct code_rec *r)
{
	if (!c->arch->has_pairs)
		return CODE_NONE;
	uint32_t locs[4];
	unsigned n = 0;
	uint32_t at = r->loc;
	while (n < ARRAY_LEN(locs)) {
		at = code_insn_before(c, at);
		if (at == CODE_NONE || code_has(c, c->rec_bits, at))
			break;
		locs[n++] = at;
	}
	struct code_track t = {0};
	struct arch_effect e;
	while (n)
		code_track_step(c, &t, locs[--n], NULL, &e);
	if (!code_effect(c, r->loc, &e) || e.op != ARCH_OP_MOVE || e.src1 >= 64 ||
	    !(t.known >> e.src1 & 1))
		return CODE_NONE;
	return code_import_of(c, space_loc(&c->d->space, t.val[e.src1]));
}

static bool name_stub(struct code *c, uint32_t loc, struct image_import *imp)
{
	struct image_data *d = c->d;
	if (imp->plt_loc == LOC_NONE)
		imp->plt_loc = loc;
	if (imp->symbol >= d->symbols.cnt || !d->symbols.data[imp->symbol].name.len)
		return true;
	return VEC_PUSH(&d->names, (struct image_name){.loc = loc,
						       .name = d->symbols.data[imp->symbol].name,
						       .kind = IMAGE_NAME_PLT,
						       .is_func = 1});
}

static bool add_import_stub(struct code *c, struct code_rec *r, uint32_t import)
{
	struct image_import *imp = &c->d->imports.data[import];
	r->target = imp->got_loc != LOC_NONE ? imp->got_loc : imp->loc;
	uint32_t start = stub_start(c, r);
	uint32_t fn = code_fn_add(c, start, IMAGE_SRC_METADATA);
	if (fn == CODE_NONE || !name_stub(c, start, imp))
		return false;
	struct code_fn *f = &c->fns.data[fn];
	f->flags |= IMAGE_FN_PLT | IMAGE_FN_THUNK;
	f->thunk_to = imp->loc;
	if (bits_get(c->import_noreturn, import)) {
		f->status = FN_NORETURN;
		f->why = IMAGE_NORETURN_NAME;
	}
	return true;
}

/* A stub for a function of this file that another one may take the place of: named after it as well. */
static bool add_local_stub(struct code *c, const struct code_rec *r, const struct map *symbols)
{
	struct image_data *d = c->d;
	uint32_t start = stub_start(c, r);
	uint32_t fn = code_fn_add(c, start, IMAGE_SRC_METADATA);
	uint32_t symbol;
	if (fn == CODE_NONE)
		return false;
	c->fns.data[fn].flags |= IMAGE_FN_PLT | IMAGE_FN_THUNK;
	c->fns.data[fn].thunk_to = r->target;
	if (!map_find(symbols, r->target, &symbol))
		return true;
	/* Not the plain name, which belongs to the function itself. */
	static const char suffix[] = "@plt";
	struct image_str name = d->symbols.data[symbol].name;
	_cleanup_buf_ struct buf text = {0};
	buf_add(&text, d->pool.data + name.off, name.len);
	buf_add(&text, suffix, sizeof(suffix) - 1);
	return !text.failed && image_pool_add(d, text.data, text.len, &name) &&
	       VEC_PUSH(&d->names, (struct image_name){.loc = start,
						       .name = name,
						       .kind = IMAGE_NAME_PLT,
						       .is_func = 1});
}

/* The first named function symbol of each address of code. */
static bool map_symbols(const struct code *c, struct map *ret)
{
	const struct image_data *d = c->d;
	for (uint32_t i = 0; i < d->symbols.cnt; i++) {
		const struct image_symbol *s = &d->symbols.data[i];
		uint32_t have;
		if (s->loc == LOC_NONE || !code_in(c, s->loc) || !s->name.len ||
		    (s->type != FMT_SYM_FUNC && s->type != FMT_SYM_IFUNC) ||
		    map_find(ret, s->loc, &have))
			continue;
		if (!map_put(ret, s->loc, i))
			return false;
	}
	return true;
}

/* Import stubs: jumps through a slot in the sections made of such. */
static struct err *add_stubs(struct code *c)
{
	_cleanup_map_ struct map symbols = {0};
	if (!map_symbols(c, &symbols))
		return &err_nomem;
	for (uint32_t i = 0; i < c->rec_cnt; i++) {
		struct code_rec *r = &c->recs[i];
		if ((r->flow != ARCH_FLOW_IJUMP && r->flow != ARCH_FLOW_JUMP) ||
		    !code_in_plt(c, r->loc))
			continue;
		bool ok = true;
		if (r->flow == ARCH_FLOW_JUMP) {
			/* Bound to this file (sweep.c); the others go to the first stub. */
			if (r->target != LOC_NONE && !code_in_plt(c, r->target) &&
			    code_has(c, c->items, r->target))
				ok = add_local_stub(c, r, &symbols);
		} else {
			uint32_t import = code_import_of(c, r->target);
			if (import == CODE_NONE)
				import = import_by_got_base(c, r);
			if (import == CODE_NONE)
				import = import_by_track(c, r);
			if (import != CODE_NONE)
				ok = add_import_stub(c, r, import);
		}
		if (!ok)
			return &err_nomem;
	}
	return NULL;
}

/* Names that programs also give to functions of their own that return. */
static bool name_is_common(const char *s, size_t len)
{
	static const char *const common[] = {"err",    "errx",	   "verr",  "verrx",
					     "xabort", "svc_exit", "rt0_go"};
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if (len == strlen(common[i]) && !memcmp(s, common[i], len))
			return true;
	return false;
}

static void apply_noreturn(struct code *c, uint32_t loc, enum image_noreturn_why why)
{
	uint32_t fn = loc == LOC_NONE ? CODE_NONE : code_fn_find(c, loc);
	if (fn == CODE_NONE)
		return;
	c->fns.data[fn].status = FN_NORETURN;
	c->fns.data[fn].why = (uint8_t)why;
}

/* The address of code that the entry's first instructions hand to the start-up routine. */
static uint32_t find_main(const struct code *c, uint32_t entry)
{
	const struct code_region *region = code_region_of(c, entry);
	struct code_track t = {0};
	uint32_t loc = entry;
	uint32_t found = LOC_NONE;
	for (unsigned n = 0; region && n < 40 && loc < region->to && code_has(c, c->items, loc);
	     n++) {
		bool has_rec = code_has(c, c->rec_bits, loc);
		const struct code_rec *r = has_rec ? &c->recs[code_rec_at(c, loc)] : NULL;
		struct arch_effect e;
		if (r && r->flow != ARCH_FLOW_NEXT) {
			if (r->flow != ARCH_FLOW_CALL && r->flow != ARCH_FLOW_ICALL)
				return LOC_NONE;
			if (r->flow == ARCH_FLOW_CALL &&
			    code_pc_thunk(c, r->target) != ARCH_REG_NONE) {
				code_track_step(c, &t, loc, r, &e);
				loc = code_insn_end(c, loc);
				continue;
			}
			break;
		}
		code_track_step(c, &t, loc, NULL, &e);
		if (e.dst < 64 && (t.known >> e.dst & 1)) {
			uint32_t to = space_loc(&c->d->space, t.val[e.dst]);
			if (to != LOC_NONE && code_has(c, c->items, to) && to != entry)
				/* Arguments are loaded last to first, or first to last where
				 * addresses take two instructions. */
				found = c->arch->has_pairs && found != LOC_NONE ? found : to;
		}
		loc = code_insn_end(c, loc);
	}
	return found;
}

static bool has_func_name(const struct image_data *d, uint32_t loc)
{
	for (size_t i = 0; i < d->names.cnt; i++)
		if (d->names.data[i].loc == loc && d->names.data[i].is_func)
			return true;
	return false;
}

static bool name_entry(struct code *c, uint32_t loc, const char *name)
{
	struct image_str s;
	if (has_func_name(c->d, loc))
		return true;
	return image_pool_add(c->d, name, strlen(name), &s) &&
	       VEC_PUSH(&c->d->names,
			(struct image_name){
				.loc = loc, .name = s, .kind = IMAGE_NAME_ENTRY, .is_func = 1});
}

static struct err *add_entry(struct code *c)
{
	struct image_meta *m = &c->d->meta;
	uint32_t entry = m->entry_loc;
	if (entry == LOC_NONE || !code_has(c, c->items, entry))
		return NULL;
	if (code_fn_add(c, entry, IMAGE_SRC_ENTRY) == CODE_NONE || !name_entry(c, entry, "_start"))
		return &err_nomem;
	uint32_t main =
		c->in->go_funcs && c->in->go_funcs->list.cnt ? LOC_NONE : find_main(c, entry);
	const struct code_ext *e = main != LOC_NONE ? code_ext_of(c, main) : NULL;
	if (main == LOC_NONE || (e && e->from != main) || code_in_plt(c, main))
		return NULL;
	if (code_fn_add(c, main, IMAGE_SRC_ENTRY) == CODE_NONE || !name_entry(c, main, "main"))
		return &err_nomem;
	if (m->main_loc == m->entry_loc)
		m->main_loc = main;
	return NULL;
}

struct err *code_names(struct code *c)
{
	const struct image_data *d = c->d;
	for (size_t i = 0; i < d->symbols.cnt; i++) {
		const struct image_symbol *s = &d->symbols.data[i];
		if (s->loc != LOC_NONE && s->name.len && code_has(c, c->starts, s->loc) &&
		    code_name_is_noreturn(d->pool.data + s->name.off, s->name.len) &&
		    !name_is_common(d->pool.data + s->name.off, s->name.len))
			apply_noreturn(c, s->loc, IMAGE_NORETURN_NAME);
	}
	const struct dbg_funcs *funcs[] = {c->in->go_funcs, c->in->dwarf_funcs};
	for (size_t k = 0; k < ARRAY_LEN(funcs); k++) {
		for (size_t i = 0; funcs[k] && i < funcs[k]->list.cnt; i++) {
			const struct dbg_func *f = &funcs[k]->list.data[i];
			if (f->is_noreturn)
				apply_noreturn(c, space_loc(&d->space, f->va),
					       IMAGE_NORETURN_DWARF);
			else if (f->name.len && code_name_is_noreturn(f->name.s, f->name.len))
				apply_noreturn(c, space_loc(&d->space, f->va), IMAGE_NORETURN_NAME);
		}
	}
	struct err *e = add_stubs(c);
	return e ? e : add_entry(c);
}
