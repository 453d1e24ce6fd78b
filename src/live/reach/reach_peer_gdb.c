/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files over the gdb remote protocol. Each kind of server has its limits, measured (docs/remote.md): lldb-server reads wrong bytes beyond
 * 4 GiB; gdbserver cuts answers to its packet and refuses what lies beyond 2 GiB; QEMU answers one request at a time.
 */
#include "live/reach/reach_peer.h"

#include "live/gdb/gdb_zstd.h"

#include <errno.h>
#include <string.h>

/* Pieces of a LOOK, in the order of their packets. */
enum part { PART_WHOLE, PART_SIZE, PART_MODULE, PART_LAST_MODULE, PART_STAT, PART_IGNORED };

struct gdb_peer {
	struct reach_peer base;
	struct reach_conn *c;
	struct reach_meta look; /* of the LOOK whose parts are coming */
	struct buf plain;	/* a decompressed block */
	bool is_learned, is_extended;
};

/* The tag of a packet: the request's, its operation and part. Tags of callers have 56 bits. */
static uint64_t tag_of(const struct reach_req *req, enum part part)
{
	return req->tag << 8 | (uint64_t)req->op << 4 | part;
}

static struct err *put_vfile(struct gdb_peer *g, const struct reach_req *req, enum gdb_vfile_op op, enum part part)
{
	struct gdb_vfile v;
	v.op = op;
	v.fd = req->fd;
	v.count = req->len;
	v.off = req->off;
	v.flags = req->flags;
	v.mode = req->mode;
	v.data = gdb_span_make(req->data, req->len);
	v.path[0] = v.path2[0] = '\0';
	if (req->path) {
		if (strlen(req->path) >= sizeof(v.path))
			return err_new(ERR_INVALID, "the path is longer than %zu bytes", sizeof(v.path) - 1);
		memcpy(v.path, req->path, strlen(req->path) + 1);
	}
	gdb_vfile_put(reach_begin(g->c), &v);
	return reach_send(g->c, tag_of(req, part), 0);
}

/* Whether it may know a file's time by its path. LLDB's are known not to. */
static bool may_stat(const struct gdb_peer *g)
{
	return !g->is_learned || g->base.kind != REACH_LLDB;
}

static struct err *submit(struct reach_peer *p, const struct reach_req *req)
{
	struct gdb_peer *g = (struct gdb_peer *)p;
	struct err *e;
	if (g->is_learned && p->kind == REACH_GDBSERVER && !g->is_extended) {
		/* Without extended mode gdbserver --multi ends with the connection. */
		g->is_extended = true;
		buf_add_ch(reach_begin(g->c), '!');
		e = reach_send(g->c, PART_IGNORED, 0);
		if (e)
			return e;
	}
	switch (req->op) {
	case REACH_LOOK:
		e = put_vfile(g, req, GDB_VFILE_SIZE, PART_SIZE);
		if (e)
			return e;
		struct buf *out = reach_begin(g->c);
		buf_add_str(out, "qModuleInfo:");
		buf_add_hexbytes(out, (const uint8_t *)req->path, strlen(req->path));
		buf_add_ch(out, ';');
		e = reach_send(g->c, tag_of(req, may_stat(g) ? PART_MODULE : PART_LAST_MODULE), 0);
		return e || !may_stat(g) ? e : put_vfile(g, req, GDB_VFILE_STAT, PART_STAT);
	case REACH_OPEN:
		return put_vfile(g, req, GDB_VFILE_OPEN, PART_WHOLE);
	case REACH_STAT:
		return put_vfile(g, req, GDB_VFILE_FSTAT, PART_WHOLE);
	case REACH_READ:
		return put_vfile(g, req, req->may_compress && p->has_compression ? GDB_VFILE_ZREAD : GDB_VFILE_PREAD, PART_WHOLE);
	case REACH_WRITE:
		return put_vfile(g, req, GDB_VFILE_PWRITE, PART_WHOLE);
	case REACH_CLOSE:
		return put_vfile(g, req, GDB_VFILE_CLOSE, PART_WHOLE);
	case REACH_UNLINK:
		return put_vfile(g, req, GDB_VFILE_UNLINK, PART_WHOLE);
	case REACH_HASH:
		return put_vfile(g, req, p->hash == REACH_XXH3 ? GDB_VFILE_XXH3 : GDB_VFILE_MD5, PART_WHOLE);
	case REACH_SHA256:
		return put_vfile(g, req, GDB_VFILE_SHA256, PART_WHOLE);
	}
	return NULL;
}

/* Greatest power of two that is at most nine tenths of the longest packet: what hits the cap itself comes back short half of the time. */
static uint64_t chunk_of(uint64_t packet_len)
{
	uint64_t chunk_len = 1024;
	while (chunk_len < 65536 && chunk_len * 2 <= packet_len / 10 * 9)
		chunk_len *= 2;
	return chunk_len;
}

/* What the answer to qSupported says about what can be asked. */
static void learn(struct gdb_peer *g)
{
	struct reach_peer *p = &g->base;
	const struct gdb_features *f = reach_features(g->c);
	p->kind = reach_conn_kind(g->c);
	p->what = reach_kind_name(p->kind);
	p->max_off = UINT64_MAX;
	p->chunk_len = 256 << 10;
	p->max_open_cnt = 512;
	p->max_write_len = f->packet_len > 256 ? (f->packet_len - 128) / 2 : 512;
	p->max_write_len = MIN(p->max_write_len, 128u << 10);
	switch (p->kind) {
	case REACH_SCRY:
		p->hash = REACH_XXH3;
		p->has_sha256 = true;
		p->has_compression = f->has_zread;
		break;
	case REACH_LLDB:
		p->hash = REACH_MD5;
		p->max_off = 1ull << 32;
		break;
	case REACH_GDBSERVER:
		p->chunk_len = chunk_of(f->packet_len);
		p->max_off = 1ull << 31;
		p->must_close = true;
		break;
	case REACH_PLAIN:
		p->chunk_len = 0x2000;
		p->must_close = true;
		break;
	}
	g->is_learned = true;
}

static void read_module(struct gdb_span payload, struct reach_meta *meta)
{
	struct gdb_span value;
	uint64_t len;
	struct buf text = {0}, id = {0};
	/* The hex of hex digits. Four bytes are a checksum that LLDB makes up for files without a build-id. */
	if (gdb_find_pair(payload, "uuid", &value) && gdb_unhex(value, 4 * REACH_MAX_ID_LEN, &text)) {
		struct gdb_span digits = gdb_span_make(text.data, text.len);
		struct buf plain = {0};
		for (size_t i = 0; i < digits.len; i++) {
			if (digits.s[i] != '-')
				buf_add_ch(&plain, digits.s[i]);
		}
		if (gdb_unhex(gdb_span_make(plain.data, plain.len), REACH_MAX_ID_LEN, &id) && id.len > 4) {
			memcpy(meta->id, id.data, id.len);
			meta->id_len = (unsigned)id.len;
		}
		buf_fini(&plain);
	}
	/* Of a piece of a file (offset not 0) the size is not the file's. */
	uint64_t off = 0;
	if (!meta->has_len && gdb_find_pair(payload, "file_size", &value) && gdb_is_hex(value, &len) &&
	    gdb_find_pair(payload, "file_offset", &value) && gdb_is_hex(value, &off) && !off) {
		meta->has_len = true;
		meta->len = len;
	}
	buf_fini(&text);
	buf_fini(&id);
}

/* An answer that is F or E. Gives false where it is neither: the server does not know the packet. */
static bool read_f(struct gdb_span payload, struct gdb_vfile_reply *f, struct reach_answer *ret)
{
	unsigned code = 0;
	*f = (struct gdb_vfile_reply){0};
	if (gdb_vfile_reply_read(payload, f)) {
		if (f->result < 0)
			ret->os_errno = gdb_errno_read(f->gdb_errno);
		return true;
	}
	ret->os_errno = gdb_is_error(payload, &code, NULL) ? gdb_errno_read(code) : ENOSYS;
	return false;
}

static struct err *read_data(struct gdb_peer *g, const struct gdb_vfile_reply *f, struct reach_answer *ret)
{
	if (f->is_compressed) {
		if (!f->result || (uint64_t)f->result > g->base.chunk_len)
			return err_new(ERR_BAD_INPUT, "the server sends a compressed block of %lld bytes nobody asked for",
				       (long long)f->result);
		g->plain.len = 0;
		uint8_t *dst = (uint8_t *)buf_room(&g->plain, (size_t)f->result);
		if (!dst)
			return &err_nomem;
		if (!gdb_zstd_read(f->data.s, f->data.len, dst, (size_t)f->result))
			return err_new(ERR_BAD_INPUT, "the server sends a compressed block that is damaged");
		ret->data = gdb_span_make(dst, (size_t)f->result);
		return NULL;
	}
	/* Its own count and what came must agree. */
	if ((uint64_t)f->result != f->data.len)
		return err_new(ERR_BAD_INPUT, "the server says that %lld bytes follow and sends %zu", (long long)f->result, f->data.len);
	ret->data = f->data;
	return NULL;
}

static void read_hash(struct gdb_peer *g, struct gdb_span payload, struct reach_answer *ret)
{
	struct buf plain = {0};
	size_t len = ret->op == REACH_SHA256 ? 32 : 16;
	if (ret->op == REACH_HASH && g->base.hash == REACH_MD5) {
		ret->os_errno = gdb_md5_read(payload, ret->hash) ? 0 : ENOSYS;
		return;
	}
	ret->os_errno = ENOSYS;
	if (gdb_skip(&payload, "F,") && gdb_unhex(payload, len, &plain) && plain.len == len) {
		memcpy(ret->hash, plain.data, len);
		ret->os_errno = 0;
	}
	buf_fini(&plain);
}

static struct err *read_stat(struct gdb_span payload, struct reach_answer *ret)
{
	struct gdb_vfile_reply f;
	struct gdb_stat st;
	if (!read_f(payload, &f, ret) || ret->os_errno)
		return NULL;
	if (!gdb_stat_read(f.data, &st))
		return err_new(ERR_BAD_INPUT, "the server's answer to fstat has %zu bytes, not %d", f.data.len, GDB_STAT_LEN);
	ret->meta = (struct reach_meta){.has_len = true, .len = st.size, .has_mtime = true, .mtime = st.mtime, .has_mode = true,
					.mode = st.mode, .dev = st.dev, .ino = st.ino};
	return NULL;
}

/* What only a stat tells, beside what is known. */
static void add_stat(struct reach_meta *m, const struct reach_meta *stat)
{
	if (!stat->has_mtime || (m->has_len && m->len != stat->len))
		return;
	m->has_len = m->has_mtime = true;
	m->len = stat->len;
	m->mtime = stat->mtime;
}

static struct err *next(struct reach_peer *p, struct reach_answer *ret)
{
	struct gdb_peer *g = (struct gdb_peer *)p;
	struct reach_reply r;
	struct gdb_vfile_reply f;
again:;
	struct err *e = reach_reply(g->c, &r);
	if (e)
		return e;
	if (!g->is_learned)
		learn(g);
	p->wire_len = reach_in_len(g->c);
	p->turn_cnt = reach_turn_cnt(g->c);
	if ((r.tag & 15) == PART_IGNORED)
		goto again;
	*ret = (struct reach_answer){.tag = r.tag >> 8, .op = (enum reach_op)(r.tag >> 4 & 15)};
	switch (ret->op) {
	case REACH_LOOK:
		if ((r.tag & 15) == PART_SIZE) {
			g->look = (struct reach_meta){0};
			if (read_f(r.payload, &f, ret) && f.result >= 0) {
				g->look.has_len = true;
				g->look.len = (uint64_t)f.result;
			}
			goto again;
		}
		if ((r.tag & 15) == PART_STAT) {
			e = read_stat(r.payload, ret);
			add_stat(&g->look, &ret->meta);
			ret->os_errno = 0;
		} else {
			read_module(r.payload, &g->look);
			if ((r.tag & 15) == PART_MODULE)
				goto again;
		}
		ret->meta = g->look;
		return e;
	case REACH_STAT:
		return read_stat(r.payload, ret);
	case REACH_READ:
		return read_f(r.payload, &f, ret) && !ret->os_errno ? read_data(g, &f, ret) : NULL;
	case REACH_OPEN:
	case REACH_WRITE:
	case REACH_CLOSE:
	case REACH_UNLINK:
		if (read_f(r.payload, &f, ret) && !ret->os_errno)
			ret->value = (uint64_t)f.result;
		break;
	case REACH_HASH:
	case REACH_SHA256:
		read_hash(g, r.payload, ret);
		break;
	}
	return NULL;
}

static struct err *flush(struct reach_peer *p)
{
	return reach_flush(((struct gdb_peer *)p)->c);
}

static void gdb_free(struct reach_peer *p)
{
	struct gdb_peer *g = (struct gdb_peer *)p;
	if (!p->is_lent)
		reach_conn_free(g->c);
	buf_fini(&g->plain);
	free(g);
}

static struct gdb_peer *peer_new(struct reach_conn *c)
{
	static const struct reach_peer_ops ops = {.submit = submit, .next = next, .flush = flush, .free = gdb_free};
	struct gdb_peer *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->c = c;
	/* Until more is known nothing but LOOK is asked. */
	g->base = (struct reach_peer){.ops = &ops, .chunk_len = 4096, .max_open_cnt = 64, .is_ordered = true, .what = "a server"};
	g->base.is_pipelined = reach_is_noack(c);
	return g;
}

struct err *reach_peer_gdb(struct reach_conn *c, struct reach_peer **ret)
{
	struct gdb_peer *g = peer_new(c);
	if (!g) {
		reach_conn_free(c);
		return &err_nomem;
	}
	*ret = &g->base;
	return NULL;
}

struct err *reach_peer_over(struct reach_conn *c, struct reach_peer **ret)
{
	struct err *e = NULL;
	while (!e && reach_open_cnt(c)) {
		struct reach_reply r;
		e = reach_reply(c, &r);
	}
	if (!e)
		e = reach_learn(c);
	struct gdb_peer *g = e ? NULL : peer_new(c);
	if (!g)
		return e ? e : &err_nomem;
	g->base.is_lent = true;
	learn(g);
	*ret = &g->base;
	return NULL;
}
