/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_interp.h"

#include <string.h>

static uint32_t slot_of(const struct ir_mem *m, uint64_t va)
{
	uint32_t mask = m->page_cap - 1;
	uint32_t i = (uint32_t)(va / IR_PAGE_LEN * 0x9e3779b97f4a7c15 >> 32) & mask;
	while (m->pages[i] && m->pages[i]->va != va)
		i = (i + 1) & mask;
	return i;
}

static bool grow(struct ir_mem *m)
{
	if (m->page_cap && m->page_cnt * 2 < m->page_cap)
		return true;
	struct ir_page **old = m->pages;
	uint32_t old_cap = m->page_cap;
	uint32_t cap = old_cap ? old_cap * 2 : 16;
	struct ir_page **bigger = ARENA_ARRAY(m->arena, struct ir_page *, cap);
	if (!bigger)
		return false;
	m->pages = bigger;
	m->page_cap = cap;
	for (uint32_t i = 0; i < old_cap; i++) {
		if (old[i])
			m->pages[slot_of(m, old[i]->va)] = old[i];
	}
	return true;
}

struct ir_page *ir_mem_page(struct ir_mem *m, uint64_t va)
{
	va &= ~(uint64_t)(IR_PAGE_LEN - 1);
	if (!grow(m))
		return NULL;
	uint32_t slot = slot_of(m, va);
	if (m->pages[slot])
		return m->pages[slot];
	if (m->page_limit && m->page_cnt >= m->page_limit)
		return NULL;
	struct ir_page *p = ARENA_NEW(m->arena, struct ir_page);
	if (!p || !(p->bytes = arena_alloc(m->arena, IR_PAGE_LEN)))
		return NULL;
	p->va = va;
	if (m->fill && !m->fill(m->ctx, p))
		return NULL;
	m->page_cnt++;
	return m->pages[slot] = p;
}

/* Bytes from `va` to the end of its page, at most `len`. */
static size_t part_len(uint64_t va, size_t len)
{
	size_t rest = IR_PAGE_LEN - (size_t)(va % IR_PAGE_LEN);
	return rest < len ? rest : len;
}

bool ir_mem_read(struct ir_mem *m, uint64_t va, void *out, size_t len, uint64_t *ret_fault)
{
	for (size_t done = 0; done < len;) {
		size_t n = part_len(va + done, len - done);
		const struct ir_page *p = ir_mem_page(m, va + done);
		if (!p) {
			*ret_fault = va + done;
			return false;
		}
		memcpy((uint8_t *)out + done, p->bytes + (va + done) % IR_PAGE_LEN, n);
		done += n;
	}
	return true;
}

bool ir_mem_write(struct ir_mem *m, uint64_t va, const void *bytes, size_t len, uint64_t *ret_fault)
{
	for (size_t done = 0; done < len; done += part_len(va + done, len - done)) {
		const struct ir_page *p = ir_mem_page(m, va + done);
		if (!p || p->is_read_only) {
			*ret_fault = va + done;
			return false;
		}
	}
	for (size_t done = 0; done < len;) {
		size_t n = part_len(va + done, len - done);
		struct ir_page *p = ir_mem_page(m, va + done);
		memcpy(p->bytes + (va + done) % IR_PAGE_LEN, (const uint8_t *)bytes + done, n);
		p->is_written = true;
		done += n;
	}
	return true;
}
