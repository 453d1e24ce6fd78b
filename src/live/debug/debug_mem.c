/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by pages that are kept until the target runs. */
#include "live/debug/debug_int.h"

#include <stdio.h>

enum { PAGES_AT_ONCE = 64, PAGES_KEPT = 16384, READ_AHEAD = 3 };

static struct debug_page *page_find(const struct debug *d, uint64_t va)
{
	uint32_t i;
	return map_find(&d->page_at, va / DEBUG_PAGE, &i) ? d->pages.data[i] : NULL;
}

/* Whether a page fits into one reply; QEMU takes and gives 4 KB. */
static uint32_t piece_of(const struct debug *d)
{
	if (d->has_x || !d->features.packet_len || d->features.packet_len > 2 * DEBUG_PAGE + 16)
		return DEBUG_PAGE;
	return d->features.packet_len > 1024 + 16 ? 512 : 128;
}

void debug_ask_page(struct debug *d, struct debug_batch *b, uint64_t va, size_t *ret_i)
{
	*ret_i = SIZE_MAX;
	va &= ~(uint64_t)(DEBUG_PAGE - 1);
	if (page_find(d, va))
		return;
	/* Not twice in one batch. */
	char want[40];
	int len = snprintf(want, sizeof(want), "%c%llx,", d->has_x ? 'x' : 'm', (unsigned long long)va);
	if (b->out.len && memmem(b->out.data, b->out.len, want, (size_t)len))
		return;
	uint32_t piece = piece_of(d);
	for (uint32_t off = 0; off < DEBUG_PAGE; off += piece) {
		size_t i = debug_ask(b, "%c%llx,%x", d->has_x ? 'x' : 'm', (unsigned long long)(va + off), piece);
		if (!off)
			*ret_i = i;
	}
}

/* Appends what a reply has; false when it is refused or cut. */
static bool take_piece(const struct debug *d, struct gdb_span reply, uint32_t piece, struct debug_page *p)
{
	unsigned code;
	if (d->has_x) {
		/* Also with words behind it; less than was asked for would rarely look so. */
		bool is_error = gdb_is_error(reply, &code, NULL);
		if (d->x_has_b && !gdb_skip(&reply, "b"))
			return false;
		if (is_error && reply.len < piece && !d->x_has_b)
			return false;
		if (!reply.len || reply.len > piece)
			return false;
		memcpy(p->bytes + p->got, reply.s, reply.len);
		p->got += (uint32_t)reply.len;
		return reply.len == piece;
	}
	_cleanup_buf_ struct buf bytes = {0};
	if (!gdb_unhex(reply, piece, &bytes) || !bytes.len)
		return false;
	memcpy(p->bytes + p->got, bytes.data, bytes.len);
	p->got += (uint32_t)bytes.len;
	return bytes.len == piece;
}

static struct err *page_add(struct debug *d, struct debug_page *p)
{
	if (d->pages.cnt == PAGES_KEPT) {
		for (size_t i = 0; i < d->pages.cnt; i++)
			free(d->pages.data[i]);
		d->pages.cnt = 0;
		map_fini(&d->page_at);
		d->page_at = (struct map){0};
	}
	if (map_put(&d->page_at, p->va / DEBUG_PAGE, (uint32_t)d->pages.cnt) && VEC_PUSH(&d->pages, p))
		return NULL;
	free(p);
	return &err_nomem;
}

/* `first` is the number of its first piece. */
static struct err *take_pieces(struct debug *d, uint64_t va, const struct debug_batch *b, size_t first)
{
	struct debug_page *p = calloc(1, sizeof(*p));
	if (!p)
		return &err_nomem;
	p->va = va & ~(uint64_t)(DEBUG_PAGE - 1);
	uint32_t piece = piece_of(d);
	for (uint32_t off = 0; off < DEBUG_PAGE; off += piece)
		if (!take_piece(d, debug_reply(b, first + off / piece), piece, p))
			break;
	return page_add(d, p);
}

struct err *debug_take_page(struct debug *d, uint64_t va, const struct debug_batch *b, size_t first)
{
	return first == SIZE_MAX || page_find(d, va) ? NULL : take_pieces(d, va, b, first);
}

struct err *debug_pages(struct debug *d, const uint64_t *vas, size_t cnt)
{
	_cleanup_batch_ struct debug_batch b = {0};
	size_t at[PAGES_AT_ONCE];
	cnt = MIN(cnt, (size_t)PAGES_AT_ONCE);
	for (size_t i = 0; i < cnt; i++)
		debug_ask_page(d, &b, vas[i], &at[i]);
	struct err *e = debug_link_run(&d->link, &b);
	for (size_t i = 0; i < cnt && !e; i++)
		e = debug_take_page(d, vas[i], &b, at[i]);
	return e;
}

size_t debug_mem_known(const struct debug *d, uint64_t va, void *out, size_t len)
{
	size_t done = 0;
	while (done < len) {
		const struct debug_page *p = page_find(d, va + done);
		uint32_t off = (uint32_t)((va + done) % DEBUG_PAGE);
		if (!p || p->got <= off)
			break;
		size_t n = MIN((size_t)(p->got - off), len - done);
		memcpy((uint8_t *)out + done, p->bytes + off, n);
		done += n;
		if (p->got < DEBUG_PAGE)
			break;
	}
	return done;
}

struct err *debug_mem(struct debug *d, uint64_t va, void *out, size_t len, size_t *ret_got)
{
	*ret_got = 0;
	DEBUG_STOPPED_ONLY(d);
	if (len && va + (len - 1) < va)
		len = (size_t)(0 - va);
	for (uint64_t at = va & ~(uint64_t)(DEBUG_PAGE - 1), last = va + (len ? len - 1 : 0); len && at <= last;) {
		uint64_t vas[PAGES_AT_ONCE];
		size_t cnt = 0;
		bool is_missing = false;
		for (; at <= last && cnt < PAGES_AT_ONCE; at += DEBUG_PAGE) {
			vas[cnt++] = at;
			is_missing |= !page_find(d, at);
			if (at + DEBUG_PAGE < at) {
				last = 0;
				break;
			}
		}
		/* Who reads a page will read the next ones, and they cost no further round trip. */
		for (int k = 0; is_missing && k < READ_AHEAD && cnt < PAGES_AT_ONCE && reach_is_noack(d->link.conn) && at > last && last; k++)
			vas[cnt++] = at + (uint64_t)k * DEBUG_PAGE;
		struct err *e = is_missing ? debug_pages(d, vas, cnt) : NULL;
		if (e)
			return e;
	}
	*ret_got = debug_mem_known(d, va, out, len);
	return NULL;
}

struct err *debug_mem_write(struct debug *d, uint64_t va, const void *bytes, size_t len)
{
	DEBUG_STOPPED_ONLY(d);
	_cleanup_batch_ struct debug_batch b = {0};
	size_t piece = d->features.packet_len > 1024 ? MIN(((size_t)d->features.packet_len - 64) / 2, (size_t)16 << 10) : 128;
	for (size_t off = 0; off < len; off += piece) {
		size_t n = MIN(piece, len - off);
		_cleanup_buf_ struct buf hex = {0};
		buf_add_hexbytes(&hex, (const uint8_t *)bytes + off, n);
		if (hex.failed)
			return &err_nomem;
		debug_ask(&b, "M%llx,%zx:%.*s", (unsigned long long)(va + off), n, (int)hex.len, hex.data);
	}
	struct err *e = debug_link_run(&d->link, &b);
	for (size_t i = 0; !e && i < b.out_ends.cnt; i++)
		if (!debug_reply_is_ok(&b, i))
			e = debug_refused(debug_reply(&b, i), "writing memory");
	/* What was written, even in part, is read anew. */
	for (size_t i = 0; i < d->pages.cnt; i++)
		free(d->pages.data[i]);
	d->pages.cnt = 0;
	map_fini(&d->page_at);
	d->page_at = (struct map){0};
	return e;
}

bool debug_word(struct debug *d, uint64_t va, uint64_t *ret)
{
	uint8_t bytes[8] = {0};
	size_t got, len = d->arch && d->arch->bits == 32 ? 4 : 8;
	struct err *e = debug_mem(d, va, bytes, len, &got);
	err_free(e);
	if (e || got < len)
		return false;
	*ret = 0;
	for (size_t i = len; i--;)
		*ret = *ret << 8 | bytes[i];
	return true;
}
