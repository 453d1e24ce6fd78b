/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files over SFTP, version 3 (draft-ietf-secsh-filexfer-02), for machines that have ssh and no scry. Every packet is a length, a type and a
 * number that the answer repeats, so many are in flight and answers may come in any order. Replies are hostile: lengths are bounded,
 * numbers must be those of open requests.
 */
#include "live/reach/reach_peer.h"

#include "base/cur.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum {
	FXP_INIT = 1,
	FXP_VERSION = 2,
	FXP_OPEN = 3,
	FXP_CLOSE = 4,
	FXP_READ = 5,
	FXP_WRITE = 6,
	FXP_FSTAT = 8,
	FXP_REMOVE = 13,
	FXP_STAT = 17,
	FXP_STATUS = 101,
	FXP_HANDLE = 102,
	FXP_DATA = 103,
	FXP_ATTRS = 105,
};
enum { FXF_READ = 1, FXF_WRITE = 2, FXF_CREAT = 8, FXF_TRUNC = 16 };
enum { ATTR_SIZE = 1, ATTR_UIDGID = 2, ATTR_PERMISSIONS = 4, ATTR_TIMES = 8 };

#define MAX_PACKET_LEN (300u << 10)
#define MAX_HANDLE_LEN 256
/* Answers on their way; a power of two. */
#define SLOTS 1024u

struct open_file {
	uint8_t handle[MAX_HANDLE_LEN];
	uint32_t len;
};

struct sftp_slot {
	bool is_used;
	enum reach_op op;
	uint64_t tag, len;
};

struct sftp {
	struct reach_peer base;
	struct reach_link link;
	struct reach_wait wait;
	struct buf out, in, reply; /* reply: the packet that is being answered */
	size_t in_pos;
	struct sftp_slot slots[SLOTS];
	uint32_t next_id, open_cnt;
	struct open_file *files;
	uint64_t file_cnt;
};

static void put_u32(struct buf *out, uint32_t v)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_add_ch(out, (char)(v >> shift));
}

static void put_u64(struct buf *out, uint64_t v)
{
	put_u32(out, (uint32_t)(v >> 32));
	put_u32(out, (uint32_t)v);
}

static void put_bytes(struct buf *out, const void *bytes, size_t len)
{
	put_u32(out, (uint32_t)len);
	buf_add(out, bytes, len);
}

/* The length, in front of what was appended since. */
static void end_packet(struct buf *out, size_t start)
{
	if (out->failed)
		return;
	size_t len = out->len - start - 4;
	for (unsigned i = 0; i < 4; i++)
		out->data[start + i] = (char)(len >> (24 - 8 * i));
}

static struct err *push_out(struct sftp *s)
{
	if (s->out.failed)
		return &err_nomem;
	size_t done = 0;
	while (done < s->out.len) {
		ssize_t n = send(s->link.out, s->out.data + done, s->out.len - done, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0)
			return err_os(errno, "ssh has ended");
		done += (size_t)n;
	}
	memmove(s->out.data, s->out.data + done, s->out.len - done);
	s->out.len -= done;
	return NULL;
}

static struct err *flush(struct reach_peer *p)
{
	struct sftp *s = (struct sftp *)p;
	return s->out.len ? push_out(s) : NULL;
}

/* The next packet without its length, in s->reply; waits for it. */
static struct err *receive(struct sftp *s)
{
	uint64_t stall_ns = reach_stall_ns(&s->wait), until_ns = reach_now_ns() + stall_ns;
	for (;;) {
		size_t left = s->in.len - s->in_pos;
		uint32_t len = left >= 4 ? load_u32((const uint8_t *)s->in.data + s->in_pos, true) : 0;
		if (left >= 4 && (!len || len > MAX_PACKET_LEN))
			return err_new(ERR_BAD_INPUT, "a packet of %u bytes came, which no SFTP server sends", len);
		if (left >= 4 && left - 4 >= len) {
			s->reply.len = 0;
			buf_add(&s->reply, s->in.data + s->in_pos + 4, len);
			s->in_pos += 4 + len;
			return s->reply.failed ? &err_nomem : NULL;
		}
		if (s->in_pos)
			memmove(s->in.data, s->in.data + s->in_pos, left);
		s->in.len = left;
		s->in_pos = 0;
		struct err *e = flush(&s->base);
		if (!e)
			e = reach_poll(s->link.in, (short)(POLLIN | (s->out.len ? POLLOUT : 0)), until_ns, &s->wait);
		char *room = e ? NULL : buf_room(&s->in, MAX_PACKET_LEN);
		if (e || !room)
			return e ? e : &err_nomem;
		ssize_t n = read(s->link.in, room, MAX_PACKET_LEN);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return n ? err_os(errno, "ssh has ended") : err_new(ERR_IO, "ssh has ended the connection");
		s->in.len += (size_t)n;
		s->base.wire_len += (uint64_t)n;
		until_ns = reach_now_ns() + stall_ns;
	}
}

/* A descriptor of ours as the server's handle; empty for one that is none. */
static struct open_file file_of(const struct sftp *s, uint64_t fd)
{
	return fd < s->file_cnt ? s->files[fd] : (struct open_file){0};
}

static struct err *submit(struct reach_peer *p, const struct reach_req *req)
{
	struct sftp *s = (struct sftp *)p;
	static const uint8_t types[] = {[REACH_LOOK] = FXP_STAT, [REACH_OPEN] = FXP_OPEN,   [REACH_STAT] = FXP_FSTAT,
					[REACH_READ] = FXP_READ, [REACH_WRITE] = FXP_WRITE, [REACH_CLOSE] = FXP_CLOSE,
					[REACH_UNLINK] = FXP_REMOVE};
	uint32_t id = s->next_id++;
	struct sftp_slot *slot = &s->slots[id % SLOTS];
	if (slot->is_used || req->op > REACH_UNLINK)
		return err_new(ERR_INTERNAL, "too much is asked of SFTP");
	*slot = (struct sftp_slot){.is_used = true, .op = req->op, .tag = req->tag, .len = req->len};
	p->turn_cnt += !s->open_cnt++;
	struct buf *out = &s->out;
	size_t start = out->len;
	put_u32(out, 0);
	buf_add_ch(out, (char)types[req->op]);
	put_u32(out, id);
	if (req->op == REACH_LOOK || req->op == REACH_OPEN || req->op == REACH_UNLINK) {
		put_bytes(out, req->path, strlen(req->path));
	} else {
		struct open_file f = file_of(s, req->fd);
		put_bytes(out, f.handle, f.len);
	}
	if (req->op == REACH_OPEN) {
		bool is_write = req->flags & GDB_O_WRONLY;
		put_u32(out, is_write ? FXF_WRITE | FXF_CREAT | FXF_TRUNC : FXF_READ);
		put_u32(out, is_write ? ATTR_PERMISSIONS : 0);
		if (is_write)
			put_u32(out, req->mode);
	} else if (req->op == REACH_READ) {
		put_u64(out, req->off);
		put_u32(out, (uint32_t)req->len);
	} else if (req->op == REACH_WRITE) {
		put_u64(out, req->off);
		put_bytes(out, req->data, (size_t)req->len);
	}
	end_packet(out, start);
	return out->len < 65536 ? NULL : push_out(s);
}

/* SSH_FX codes, section 7. */
static int errno_of(uint32_t status)
{
	static const int codes[] = {0, 0, ENOENT, EACCES, EIO, EPROTO, ENOTCONN, ECONNRESET, ENOSYS};
	return status < ARRAY_LEN(codes) ? codes[status] : EIO;
}

static struct err *take_handle(struct sftp *s, struct cur *c, struct reach_answer *ret)
{
	uint32_t len = cur_u32(c);
	const uint8_t *bytes = cur_bytes(c, len);
	if (!bytes || len > MAX_HANDLE_LEN)
		return err_new(ERR_BAD_INPUT, "the server's handle of a file is too long");
	/* Places of closed files are not taken again: there are few. */
	struct open_file *all = realloc(s->files, (s->file_cnt + 1) * sizeof(*all));
	if (!all)
		return &err_nomem;
	s->files = all;
	all[s->file_cnt].len = len;
	memcpy(all[s->file_cnt].handle, bytes, len);
	ret->value = s->file_cnt++;
	return NULL;
}

static void take_attrs(struct cur *c, struct reach_meta *ret)
{
	uint32_t flags = cur_u32(c);
	if (flags & ATTR_SIZE) {
		ret->len = cur_u64(c);
		ret->has_len = !c->failed;
	}
	if (flags & ATTR_UIDGID)
		cur_skip(c, 8);
	if (flags & ATTR_PERMISSIONS) {
		ret->mode = cur_u32(c);
		ret->has_mode = !c->failed;
	}
	if (flags & ATTR_TIMES) {
		cur_skip(c, 4);
		ret->mtime = cur_u32(c);
		ret->has_mtime = !c->failed;
	}
}

static struct err *next(struct reach_peer *p, struct reach_answer *ret)
{
	struct sftp *s = (struct sftp *)p;
	struct err *e = receive(s);
	if (e)
		return e;
	struct cur c = cur_make(s->reply.data, s->reply.len, true);
	uint8_t type = cur_u8(&c);
	struct sftp_slot *slot = &s->slots[cur_u32(&c) % SLOTS];
	if (c.failed || !slot->is_used)
		return err_new(ERR_BAD_INPUT, "the server answers a request nobody made");
	*ret = (struct reach_answer){.tag = slot->tag, .op = slot->op};
	slot->is_used = false;
	s->open_cnt--;
	if (type == FXP_STATUS) {
		uint32_t status = cur_u32(&c);
		ret->os_errno = errno_of(status);
		ret->value = slot->len; /* of a write that succeeded */
	} else if (type == FXP_HANDLE && slot->op == REACH_OPEN) {
		e = take_handle(s, &c, ret);
	} else if (type == FXP_DATA && slot->op == REACH_READ) {
		uint32_t len = cur_u32(&c);
		ret->data = gdb_span_make(cur_bytes(&c, len), len);
	} else if (type == FXP_ATTRS && (slot->op == REACH_STAT || slot->op == REACH_LOOK)) {
		take_attrs(&c, &ret->meta);
	} else {
		e = err_new(ERR_BAD_INPUT, "the server answers something else than it was asked");
	}
	if (!e && c.failed)
		e = err_new(ERR_BAD_INPUT, "the server's answer ends early");
	/* That a file is not there is for OPEN to say. */
	if (slot->op == REACH_LOOK)
		ret->os_errno = 0;
	return e;
}

static void sftp_free(struct reach_peer *p)
{
	struct sftp *s = (struct sftp *)p;
	reach_link_close(&s->link);
	buf_fini(&s->out);
	buf_fini(&s->in);
	buf_fini(&s->reply);
	free(s->files);
	free(s);
}

static struct err *handshake(struct sftp *s)
{
	static const uint8_t init[] = {0, 0, 0, 5, FXP_INIT, 0, 0, 0, 3};
	buf_add(&s->out, init, sizeof(init));
	struct err *e = receive(s);
	if (!e && (s->reply.len < 5 || s->reply.data[0] != FXP_VERSION))
		e = err_new(ERR_BAD_INPUT, "what answers is not an SFTP server");
	return e;
}

struct err *reach_peer_sftp(struct reach_link link, const struct reach_wait *wait, struct reach_peer **ret)
{
	static const struct reach_peer_ops ops = {.submit = submit, .next = next, .flush = flush, .free = sftp_free};
	struct sftp *s = calloc(1, sizeof(*s));
	if (!s) {
		reach_link_close(&link);
		return &err_nomem;
	}
	s->link = link;
	s->wait = *wait;
	/* 64 KiB is what every server gives at once; OpenSSH gives 256, and what is short is asked for again. */
	s->base = (struct reach_peer){.ops = &ops,
				      .kind = REACH_PLAIN,
				      .what = "sftp",
				      .chunk_len = 64u << 10,
				      .max_open_cnt = 256,
				      .max_off = UINT64_MAX,
				      .max_write_len = 32u << 10};
	struct err *e = handshake(s);
	if (e)
		sftp_free(&s->base);
	else
		*ret = &s->base;
	return e;
}
