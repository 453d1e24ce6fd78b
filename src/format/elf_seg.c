/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would be mapped. Linux maps every PT_LOAD in the order of the table, whole pages at a time
 * (from the page of p_vaddr, at the page of p_offset), clears what lies behind p_filesz, and lets
 * later mappings replace earlier ones (fs/binfmt_elf.c, elf_load()). This is done here exactly, as
 * painting over an address line cut at every place where anything begins or ends. What is shown of
 * the result is what the headers name ([p_vaddr, p_vaddr + p_memsz) of any PT_LOAD) and not the
 * slack of the pages, unless the program starts in the slack.
 *
 * Firmware is not mapped but copied, byte for byte, and its segments may share a page with other
 * bytes in it. So a file for another machine than a PC without any header that only a hosted
 * program has is painted without rounding.
 *
 * Painting goes from the last mapping to the first and skips what is painted already, so each cell
 * is painted once and the cost is that of sorting the edges.
 */
#include "format/elf_int.h"

#include <elf.h>

enum {
	LOAD_MAX = 65530, /* Linux' default vm.max_map_count */
	EDGES_PER_LOAD = 6,
	SLACK = 1 << 20, /* more than there can be claims */
};

/* A range of one mapping; file bytes from file_off, or zeros. */
struct map_op {
	uint64_t start, end;
	uint64_t file_off;
	uint32_t load;
	uint8_t perm;
	bool is_zero;
};

/* A range the headers name, of weight 1; a range shown although no header names it has weight
 * SLACK. */
struct claim {
	uint64_t start, end;
	int32_t weight;
};

struct painter {
	VEC(struct map_op) ops;
	VEC(struct claim) claims;
	uint64_t *edges;    /* sorted, unique */
	uint32_t *owner;    /* per cell: op + 1, 0 unpainted */
	uint32_t *next;	    /* per cell: a later cell that may be unpainted (union-find) */
	int32_t *claim_cnt; /* per cell, from differences */
	size_t edge_cnt;
	bool is_from_sections;
	bool is_paged; /* mapped by pages, as Linux does */
};

bool elf_read_ph(const struct elf *e, uint32_t idx, struct elf_ph *ret)
{
	if (idx >= e->phnum)
		return false;
	struct cur c = elf_cur(e, e->phoff, e->len - (e->phoff < e->len ? e->phoff : e->len));
	cur_seek(&c, (uint64_t)idx * e->ph_stride);
	struct elf_ph ph;
	ph.type = cur_u32(&c);
	if (e->is_64)
		ph.flags = cur_u32(&c);
	unsigned word = elf_word_len(e);
	ph.off = cur_word(&c, word);
	ph.va = cur_word(&c, word);
	cur_word(&c, word);
	ph.file_len = cur_word(&c, word);
	ph.mem_len = cur_word(&c, word);
	if (!e->is_64)
		ph.flags = cur_u32(&c);
	ph.align = cur_word(&c, word);
	if (c.failed)
		return false;
	*ret = ph;
	return true;
}

static void painter_fini(struct painter *p)
{
	VEC_FREE(&p->ops);
	VEC_FREE(&p->claims);
	free(p->edges);
	free(p->owner);
	free(p->next);
	free(p->claim_cnt);
}

static uint64_t page_start(uint64_t va)
{
	return va & ~(uint64_t)(ELF_PAGE_LEN - 1);
}

/* The end of the last page of the address space is not representable: one byte is given up there.
 */
static uint64_t page_end(uint64_t va)
{
	return va > UINT64_MAX - ELF_PAGE_LEN ? UINT64_MAX : page_start(va + ELF_PAGE_LEN - 1);
}

/* Brings a header to what can be mapped, with findings for what Linux would refuse; false for
 * nothing. */
static bool check_load(struct elf *e, struct elf_ph *ph, uint32_t load)
{
	struct findings *f = &e->b->findings;
	uint64_t top = e->is_64 ? UINT64_MAX : (uint64_t)UINT32_MAX + 1;
	if (ph->mem_len < ph->file_len) {
		finding_add_va(
			f, FINDING_WARNING, ph->va, "program header",
			"LOAD#%u has more bytes in the file than in memory; Linux refuses it",
			load);
		ph->file_len = ph->mem_len;
	}
	if (ph->mem_len == 0)
		return false;
	if (ph->mem_len > top - ph->va) {
		finding_add_va(f, FINDING_ERROR, ph->va, "program header",
			       "LOAD#%u reaches past the end of the address space; it is cut",
			       load);
		ph->mem_len = top - ph->va;
		ph->file_len = ph->file_len < ph->mem_len ? ph->file_len : ph->mem_len;
		if (ph->mem_len == 0)
			return false;
	}
	uint64_t room = ph->off < e->len ? e->len - ph->off : 0;
	if (ph->file_len > room)
		finding_add_va(
			f, FINDING_WARNING, ph->va, "program header",
			"LOAD#%u reaches past the end of the file: %llu of %llu bytes are there",
			load, (unsigned long long)room, (unsigned long long)ph->file_len);
	return true;
}

static bool add_op(struct elf *e, struct painter *p, struct map_op op)
{
	if (op.start >= op.end)
		return true;
	if (!op.is_zero) {
		/* What the file does not have reads as zeros. */
		uint64_t room = op.file_off < e->len ? e->len - op.file_off : 0;
		if (room < op.end - op.start) {
			struct map_op zero = op;
			zero.start = op.start + room;
			zero.is_zero = true;
			op.end = zero.start;
			if (!VEC_PUSH(&p->ops, zero))
				return false;
		}
	}
	return op.start >= op.end || VEC_PUSH(&p->ops, op);
}

static bool add_load(struct elf *e, struct painter *p, const struct elf_ph *ph, uint32_t load)
{
	struct map_op op = {
		.load = load,
		.perm = (uint8_t)((ph->flags & PF_R ? FMT_R : 0) | (ph->flags & PF_W ? FMT_W : 0) |
				  (ph->flags & PF_X ? FMT_X : 0)),
	};
	uint64_t file_end = ph->va + ph->file_len;
	uint64_t mem_end = ph->va + ph->mem_len;
	if (ph->file_len) {
		uint64_t slack = ph->va % ELF_PAGE_LEN;
		bool is_congruent = ph->off % ELF_PAGE_LEN == slack;
		bool is_rounded = is_congruent && p->is_paged;
		if (!is_rounded)
			slack = 0;
		if (!is_congruent && e->type != ET_CORE)
			finding_add_va(&e->b->findings, FINDING_NOTE, ph->va, "program header",
				       "LOAD#%u: address and offset differ within the page; Linux "
				       "refuses it",
				       load);
		op.start = ph->va - slack;
		op.end = is_rounded ? page_end(file_end) : file_end;
		op.file_off = ph->off - slack;
		if (!add_op(e, p, op))
			return false;
	}
	op.is_zero = true;
	op.start = file_end; /* kernels differ on the page before it when there are no file bytes */
	op.end = ph->mem_len == ph->file_len ? op.start : p->is_paged ? page_end(mem_end) : mem_end;
	if (!add_op(e, p, op))
		return false;
	return VEC_PUSH(&p->claims, (struct claim){ph->va, mem_end, 1});
}

static bool is_paged(const struct elf *e)
{
	if (e->machine == EM_X86_64 || e->machine == EM_386)
		return true;
	for (uint32_t i = 0; i < e->phnum; i++) {
		struct elf_ph ph;
		if (elf_read_ph(e, i, &ph) &&
		    (ph.type == PT_INTERP || ph.type == PT_DYNAMIC || ph.type == PT_TLS ||
		     ph.type == PT_GNU_STACK || ph.type == PT_GNU_RELRO))
			return true;
	}
	return false;
}

static struct err *collect_loads(struct elf *e, struct painter *p)
{
	/* Two operations (three at the end of the file), the claim, six edges with their cells, the
	 * result. */
	const uint64_t cost =
		3 * sizeof(struct map_op) + sizeof(struct claim) +
		EDGES_PER_LOAD * (sizeof(uint64_t) + 2 * sizeof(uint32_t) + sizeof(int32_t)) +
		2 * sizeof(struct fmt_segment) + 32;
	uint32_t load = 0;
	p->is_paged = is_paged(e);
	for (uint32_t i = 0; i < e->phnum; i++) {
		struct elf_ph ph;
		if (!elf_read_ph(e, i, &ph))
			break;
		if (ph.type == PT_TLS) {
			e->tls_va = ph.va;
			e->tls_file_len = ph.file_len;
		}
		if (ph.type != PT_LOAD)
			continue;
		uint32_t number = load++;
		if (!check_load(e, &ph, number))
			continue;
		if (number >= LOAD_MAX || !elf_take(e, cost)) {
			finding_add(&e->b->findings, FINDING_ERROR, e->phoff, "program headers",
				    "more segments than can be mapped; those after LOAD#%u are "
				    "left out",
				    number);
			break;
		}
		if (!add_load(e, p, &ph, number))
			return &err_nomem;
	}
	return NULL;
}

/* Without program headers: the allocated sections, in the order of the table. */
static struct err *collect_sections(struct elf *e, struct painter *p)
{
	const struct fmt_bin *b = e->b;
	if (b->sections.cnt == 0 || !elf_take(e, b->sections.cnt * 240))
		return NULL;
	for (uint32_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		if (!s->is_alloc || s->mem_len == 0 ||
		    ((s->raw_flags & SHF_TLS) && s->raw_type == SHT_NOBITS))
			continue;
		struct map_op op = {.start = s->va,
				    .end = s->va + s->file_len,
				    .file_off = s->file_off,
				    .load = i,
				    .perm = s->perm};
		struct map_op zero = {.start = s->va + s->file_len,
				      .end = s->va + s->mem_len,
				      .load = i,
				      .perm = s->perm,
				      .is_zero = true};
		if (op.end < op.start || op.end > zero.end)
			op.end = zero.start = zero.end;
		if (!add_op(e, p, op) || !add_op(e, p, zero) ||
		    !VEC_PUSH(&p->claims, (struct claim){s->va, s->va + s->mem_len, 1}))
			return &err_nomem;
	}
	if (p->ops.cnt && e->type != ET_CORE)
		finding_add(&e->b->findings, FINDING_ERROR, UINT64_MAX, "program headers",
			    "none that loads anything; the sections are taken instead");
	return NULL;
}

/* A program may start in the part of a page that no header names. */
static struct err *claim_entry(struct elf *e, struct painter *p)
{
	if (e->type != ET_EXEC && e->type != ET_DYN)
		return NULL;
	for (size_t i = 0; i < p->claims.cnt; i++) {
		if (e->entry >= p->claims.data[i].start && e->entry < p->claims.data[i].end)
			return NULL;
	}
	for (size_t i = p->ops.cnt; i-- > 0;) {
		const struct map_op *op = &p->ops.data[i];
		if (op->is_zero || e->entry < op->start || e->entry >= op->end)
			continue;
		finding_add_va(&e->b->findings, FINDING_WARNING, e->entry, "entry point",
			       "lies in the page of LOAD#%u but not in the bytes it names; the "
			       "page is shown",
			       op->load);
		return VEC_PUSH(&p->claims, (struct claim){op->start, op->end, SLACK}) ? NULL
										       : &err_nomem;
	}
	return NULL;
}

static int by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static size_t cell_of(const struct painter *p, uint64_t va)
{
	size_t lo = 0;
	size_t hi = p->edge_cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (p->edges[mid] < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct err *cut_line(struct painter *p)
{
	size_t max_cnt = 2 * (p->ops.cnt + p->claims.cnt);
	p->edges = alloc_array(max_cnt, sizeof(*p->edges));
	p->owner = alloc_array(max_cnt, sizeof(*p->owner));
	p->next = alloc_array(max_cnt, sizeof(*p->next));
	p->claim_cnt = alloc_array(max_cnt, sizeof(*p->claim_cnt));
	if (!p->edges || !p->owner || !p->next || !p->claim_cnt)
		return &err_nomem;
	size_t n = 0;
	for (size_t i = 0; i < p->ops.cnt; i++) {
		p->edges[n++] = p->ops.data[i].start;
		p->edges[n++] = p->ops.data[i].end;
	}
	for (size_t i = 0; i < p->claims.cnt; i++) {
		p->edges[n++] = p->claims.data[i].start;
		p->edges[n++] = p->claims.data[i].end;
	}
	qsort(p->edges, n, sizeof(*p->edges), by_u64);
	size_t cnt = 0;
	for (size_t i = 0; i < n; i++) {
		if (cnt == 0 || p->edges[cnt - 1] != p->edges[i])
			p->edges[cnt++] = p->edges[i];
	}
	p->edge_cnt = cnt;
	for (size_t i = 0; i < cnt; i++)
		p->next[i] = (uint32_t)i;
	return NULL;
}

static uint32_t find_unpainted(struct painter *p, uint32_t cell)
{
	uint32_t root = cell;
	while (p->next[root] != root)
		root = p->next[root];
	while (p->next[cell] != root) {
		uint32_t after = p->next[cell];
		p->next[cell] = root;
		cell = after;
	}
	return root;
}

static void paint(struct painter *p)
{
	for (size_t i = p->ops.cnt; i-- > 0;) {
		const struct map_op *op = &p->ops.data[i];
		uint32_t end = (uint32_t)cell_of(p, op->end);
		uint32_t cell = find_unpainted(p, (uint32_t)cell_of(p, op->start));
		while (cell < end) {
			p->owner[cell] = (uint32_t)i + 1;
			p->next[cell] =
				cell + 1; /* the last edge starts no cell and is never painted */
			cell = find_unpainted(p, cell);
		}
	}
	for (size_t i = 0; i < p->claims.cnt; i++) {
		p->claim_cnt[cell_of(p, p->claims.data[i].start)] += p->claims.data[i].weight;
		p->claim_cnt[cell_of(p, p->claims.data[i].end)] -= p->claims.data[i].weight;
	}
	for (size_t i = 1; i < p->edge_cnt; i++)
		p->claim_cnt[i] += p->claim_cnt[i - 1];
}

static struct err *append_cell(struct elf *e, const struct painter *p, size_t cell,
			       uint32_t *last_load)
{
	struct fmt_bin *b = e->b;
	const struct map_op *op = &p->ops.data[p->owner[cell] - 1];
	uint64_t start = p->edges[cell];
	uint64_t len = p->edges[cell + 1] - start;
	uint64_t file_off = op->is_zero ? 0 : op->file_off + (start - op->start);
	struct fmt_segment *last = b->segments.cnt ? &b->segments.data[b->segments.cnt - 1] : NULL;
	if (last && *last_load == op->load && last->va + last->mem_len == start) {
		bool is_all_file = last->file_len == last->mem_len;
		if (op->is_zero) {
			last->mem_len += len;
			return NULL;
		}
		if (is_all_file && last->file_off + last->file_len == file_off) {
			last->mem_len += len;
			last->file_len += len;
			return NULL;
		}
	}
	struct fmt_segment seg = {.va = start,
				  .mem_len = len,
				  .file_off = file_off,
				  .file_len = op->is_zero ? 0 : len,
				  .perm = op->perm};
	const struct fmt_section *sec = p->is_from_sections ? elf_section(e, op->load + 1) : NULL;
	if (sec && sec->name.s) {
		seg.name = sec->name;
	} else {
		char *name = arena_printf(&b->arena, "LOAD#%u", op->load);
		if (!name)
			return &err_nomem;
		seg.name = (struct fmt_str){name, (uint32_t)strlen(name)};
	}
	*last_load = op->load;
	return VEC_PUSH(&b->segments, seg) ? NULL : &err_nomem;
}

static struct err *emit(struct elf *e, struct painter *p)
{
	uint32_t last_load = ELF_NO_INDEX;
	uint64_t overlap_start = 0;
	bool is_overlap = false;
	for (size_t i = 0; i < p->edge_cnt; i++) {
		bool is_double = p->claim_cnt[i] % SLACK > 1;
		if (is_double && !is_overlap)
			overlap_start = p->edges[i];
		if (!is_double && is_overlap)
			finding_add_va(
				&e->b->findings, FINDING_WARNING, overlap_start, "program headers",
				"segments overlap from 0x%llx to 0x%llx; the later one counts",
				(unsigned long long)overlap_start, (unsigned long long)p->edges[i]);
		is_overlap = is_double;
		if (p->claim_cnt[i] == 0 ||
		    p->owner[i] == 0) /* so for the last edge, where no cell begins */
			continue;
		struct err *err = append_cell(e, p, i, &last_load);
		if (err)
			return err;
	}
	for (size_t i = 0; i < e->b->segments.cnt; i++) {
		struct fmt_segment *s = &e->b->segments.data[i];
		s->file_len = elf_take_mapped(e, s->va, s->file_len);
	}
	return NULL;
}

static struct err *paint_segments(struct elf *e, struct painter *p)
{
	struct err *err = collect_loads(e, p);
	if (!err && p->ops.cnt == 0) {
		p->is_from_sections = true;
		err = collect_sections(e, p);
	} else if (!err) {
		err = claim_entry(e, p);
	}
	if (err || p->ops.cnt == 0)
		return err;
	err = cut_line(p);
	if (err)
		return err;
	paint(p);
	return emit(e, p);
}

struct err *elf_load_segments(struct elf *e)
{
	struct painter p = {0};
	struct err *err = paint_segments(e, &p);
	painter_fini(&p);
	return err;
}

struct err *elf_add_made_up(struct elf *e, const char *name, uint64_t len, uint8_t perm,
			    uint64_t *ret_va)
{
	struct fmt_bin *b = e->b;
	const struct fmt_segment *last =
		b->segments.cnt ? &b->segments.data[b->segments.cnt - 1] : NULL;
	uint64_t end = last ? last->va + last->mem_len : ELF_PAGE_LEN;
	uint64_t top = e->is_64 ? UINT64_MAX : UINT32_MAX;
	uint64_t gap = 2 * (uint64_t)ELF_PAGE_LEN;
	*ret_va = 0;
	if (end > top - gap || len > top - gap - end) {
		finding_add(&b->findings, FINDING_WARNING, UINT64_MAX, "address space",
			    "no room behind the last segment for %s", name);
		return NULL;
	}
	uint64_t va = page_end(end + ELF_PAGE_LEN);
	struct fmt_segment seg = {
		.va = va, .mem_len = len, .perm = perm, .name = {name, (uint32_t)strlen(name)}};
	if (!VEC_PUSH(&b->segments, seg))
		return &err_nomem;
	*ret_va = va;
	return NULL;
}
