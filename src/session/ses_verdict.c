/* SPDX-License-Identifier: Apache-2.0 */
#include "session/ses_verdict.h"

#include "decomp/dec.h"
#include "lift/lift_image.h"
#include "session/ses_int.h"
#include "session/ses_sha256.h"
#include "session/ses_types.h"

#include "base/child_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KIND "verdict"

/* --- the function ------------------------------------------------------------------------------------------------------ */
/* Where the block's last instruction begins. */
static uint64_t last_insn(struct ses_snap *sn, const struct ses_block *b)
{
	uint32_t start, len, end = space_loc(sn->space, b->end - 1);
	enum image_item_kind kind;
	return end != LOC_NONE && image_item_at(sn->im, end, &start, &len, &kind) ? space_va(sn->space, start) : 0;
}

static bool has_edge(const struct verify_edge *edges, uint32_t first, uint32_t cnt, uint32_t to)
{
	for (uint32_t i = first; i < cnt; i++)
		if (edges[i].to == to)
			return true;
	return false;
}

static uint64_t low_bits(unsigned bits)
{
	return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* What the function gives, by its signature; without one, all that may be a result. */
static void put_results(struct ses_snap *sn, const struct ses_code *c, struct verify_func *ret)
{
	const struct ir_machine *m = lift_machine(sn->arch->id);
	struct ir_sig sig = {.result = IR_LOC_NONE};
	uint64_t leaves[DEC_LOC_WORDS];
	unsigned rax = ir_loc_find(m, "rax", 3), rdx = ir_loc_find(m, "rdx", 3), xmm0 = ir_loc_find(m, "xmm0", 4), f7 = ir_loc_find(m, "f7", 2);
	bool is_all = rax == IR_LOC_NONE || !ses_proto_leaves(sn, c->va, leaves);
	if (!is_all)
		(void)ses_proto_sig(sn, c->va, &sig);
	unsigned bits = ir_bits((enum ir_width)sig.result_width);
#define LEAVES(loc) (is_all || (leaves[(loc) / 64] >> (loc) % 64 & 1))
	ret->not_rax = LEAVES(rax) ? 0 : sig.result == rax ? ~low_bits(bits) : UINT64_MAX;
	ret->not_rdx = LEAVES(rdx) ? 0 : UINT64_MAX;
	ret->not_xmm0[0] = LEAVES(xmm0) ? 0 : sig.result == xmm0 ? ~low_bits(bits) : UINT64_MAX;
	ret->not_xmm0[1] = LEAVES(xmm0) || (sig.result == xmm0 && bits > 64) ? 0 : UINT64_MAX;
	ret->not_st0 = !LEAVES(f7);
#undef LEAVES
}

struct err *ses_verdict_func(struct ses_snap *sn, const struct ses_call *call, const struct ses_code *c, struct arena *a,
			     struct verify_func *ret)
{
	struct ses_block *b;
	uint32_t cnt, edge_cnt = 0;
	struct err *e = ses_blocks(sn, call, c->va, a, &b, &cnt);
	if (e)
		return e;
	for (uint32_t i = 0; i < cnt; i++)
		edge_cnt += b[i].succ_cnt;
	uint64_t *blocks = ARENA_ARRAY(a, uint64_t, (size_t)cnt + 1), *words = ARENA_ARRAY(a, uint64_t, c->word_cnt + 1);
	struct verify_edge *edges = ARENA_ARRAY(a, struct verify_edge, (size_t)edge_cnt + 1);
	char entry[40];
	ses_code_entry_name(c->va, entry, sizeof(entry));
	const char *name = arena_strndup(a, entry, strlen(entry));
	if (!blocks || !words || !edges || !name)
		return &err_nomem;
	*ret = (struct verify_func){.va = c->va, .name = name, .blocks = blocks, .block_cnt = cnt, .words = words, .word_cnt = c->word_cnt,
				    .edges = edges};
	put_results(sn, c, ret);
	memcpy(words, c->words, c->word_cnt * sizeof(*words));
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t branch = b[i].succ_cnt > 1 ? last_insn(sn, &b[i]) : 0;
		uint32_t first = ret->edge_cnt;
		blocks[i] = b[i].addr;
		for (uint32_t k = 0; k < b[i].succ_cnt; k++)
			if (!has_edge(edges, first, ret->edge_cnt, b[i].succ[k].id))
				edges[ret->edge_cnt++] = (struct verify_edge){.from = i, .to = b[i].succ[k].id, .branch = branch};
	}
	return NULL;
}

/* --- the key ------------------------------------------------------------------------------------------------------------- */
/* The program that is run: another one may make other code. */
static void find_cc(char *ret, size_t cap)
{
	char path[80];
	struct stat st;
	ret[0] = '\0';
	if (child_tool_find(SES_VERDICT_CC, path, sizeof(path)) && !stat(path, &st))
		snprintf(ret, cap, "%s %lld %lld", path, (long long)st.st_size, (long long)st.st_mtime);
}

/* Stubs that the analysis, or somebody, says do not return end a call. */
static void add_enders(struct ses_snap *sn, struct buf *b)
{
	uint32_t cnt, func_cnt;
	const struct image_import *imports = image_imports(sn->im, &cnt);
	const struct image_func *funcs = image_funcs(sn->im, &func_cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t f = image_func_starting(sn->im, imports[i].plt_loc);
		buf_add_ch(b, f < func_cnt && funcs[f].flags & IMAGE_FN_NORETURN ? '1' : '0');
	}
}

struct err *ses_verdict_base_make(struct ses_snap *sn, struct ses_verdict_base *ret)
{
	_cleanup_buf_ struct buf b = {0};
	size_t len;
	const char *header = ses_code_header(&len);
	find_cc(ret->cc, sizeof(ret->cc));
	buf_printf(&b, "%d %zu %s %s %llu\n", VERIFY_ENGINE_VERSION, sizeof(struct verify_verdict), ret->cc, SES_VERDICT_LEVEL,
		   (unsigned long long)ses_snap_bias(sn));
	add_enders(sn, &b);
	buf_add(&b, header, len);
	return b.failed ? &err_nomem : ses_sha256((const uint8_t *)b.data, b.len, NULL, NULL, NULL, ret->hash);
}

struct err *ses_verdict_key(struct ses_snap *sn, const struct ses_verdict_base *base, const struct verify_func *f, const struct ses_code *c,
			    uint8_t ret[32])
{
	_cleanup_buf_ struct buf b = {0};
	buf_add(&b, (const char *)base->hash, sizeof(base->hash));
	buf_printf(&b, "%llu %u %u %u\n", (unsigned long long)f->va, f->block_cnt, f->edge_cnt, f->word_cnt);
	buf_add(&b, (const char *)f->blocks, f->block_cnt * sizeof(*f->blocks));
	buf_add(&b, (const char *)f->edges, f->edge_cnt * sizeof(*f->edges));
	buf_add(&b, (const char *)f->words, f->word_cnt * sizeof(*f->words));
	buf_printf(&b, "%llx %llx %llx %llx %d\n", (unsigned long long)f->not_rax, (unsigned long long)f->not_rdx,
		   (unsigned long long)f->not_xmm0[0], (unsigned long long)f->not_xmm0[1], f->not_st0);
	ses_code_decls(sn, c, &b);
	buf_add(&b, c->text.data, c->text.len);
	return b.failed ? &err_nomem : ses_sha256((const uint8_t *)b.data, b.len, NULL, NULL, NULL, ret);
}

/* --- the store ------------------------------------------------------------------------------------------------------------ */
struct kept {
	struct ses_verdict_how how;
	struct verify_verdict verdict;
};

static struct store *store_of(const struct ses_snap *sn)
{
	return sn->ses->has_sha256 ? sn->ses->store : NULL;
}

struct store_cached_list ses_verdict_load(struct ses_snap *sn, uint64_t from, uint64_t to, struct arena *a)
{
	if (!store_of(sn))
		return (struct store_cached_list){0};
	/* Where there is none of any function the file is asked once: opening it is a third of what decompiling takes. */
	uint64_t stamp = store_cache_stamp(store_of(sn), sn->ses->sha256);
	if (!stamp || stamp == atomic_load(&sn->ses->no_verdicts))
		return (struct store_cached_list){0};
	struct store_cached_list l = store_cache_load(store_of(sn), sn->ses->sha256, KIND, MIN(from, (uint64_t)INT64_MAX),
						      MIN(to, (uint64_t)INT64_MAX), a);
	if (l.cnt || stamp == atomic_load(&sn->ses->some_verdicts))
		return l;
	bool is_none = !store_cache_load(store_of(sn), sn->ses->sha256, KIND, 0, INT64_MAX, a).cnt;
	atomic_store(is_none ? &sn->ses->no_verdicts : &sn->ses->some_verdicts, stamp);
	return l;
}

/* The file may say anything. */
static bool is_sound(const struct verify_verdict *v)
{
	return (unsigned)v->status < VERIFY_STATUS_COUNT && v->inputs <= v->tried && v->blocks_hit <= v->blocks && v->edges_hit <= v->edges &&
	       v->word_cnt <= VERIFY_WORD_MAX && memchr(v->why, 0, sizeof(v->why));
}

bool ses_verdict_find(const struct store_cached_list *l, uint64_t va, const uint8_t key[32], const struct ses_verdict_how *how,
		      struct verify_verdict *ret)
{
	uint32_t lo = 0, hi = l->cnt;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (l->rows[mid].addr < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	struct kept k;
	if (lo == l->cnt || l->rows[lo].addr != va || memcmp(l->rows[lo].key, key, 32) != 0 || l->rows[lo].len != sizeof(k))
		return false;
	memcpy(&k, l->rows[lo].value, sizeof(k));
	if ((how && (how->seeds != k.how.seeds || how->cpu_ms != k.how.cpu_ms)) || !is_sound(&k.verdict))
		return false;
	*ret = k.verdict;
	return true;
}

struct err *ses_verdict_row(uint64_t va, const uint8_t key[32], const struct ses_verdict_how *how, const struct verify_verdict *v,
			    struct arena *a, struct store_cached *ret)
{
	struct kept *k = ARENA_NEW(a, struct kept);
	if (!k)
		return &err_nomem;
	memset(k, 0, sizeof(*k));
	k->how = *how;
	k->verdict = *v;
	*ret = (struct store_cached){.addr = va, .value = k, .len = sizeof(*k)};
	memcpy(ret->key, key, 32);
	return NULL;
}

void ses_verdict_put(struct ses_snap *sn, const struct store_cached *rows, uint32_t cnt)
{
	if (store_of(sn) && cnt)
		(void)store_cache_put(store_of(sn), sn->ses->sha256, KIND, rows, cnt);
}
