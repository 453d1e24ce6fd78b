/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_file.h"

#include "live/trace/trace_decode.h"
#include "live/trace/trace_frame.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

static const char file_magic[8] = "scrytrc1";

/* Before the text of the header. */
struct file_head {
	char magic[8];
	uint32_t order;    /* FILE_ORDER as the writer's machine has it */
	uint32_t text_len; /* bytes, a multiple of 8 */
};
#define FILE_ORDER 0x01020304u
#define TEXT_MAX (1u << 16)

/* Before the records of a block. */
struct block_head {
	uint32_t magic;
	uint32_t len;   /* bytes, a multiple of 8 */
	uint64_t xxh3;
};
#define BLOCK_MAGIC 0x6b6c6273u /* "sblk" */
#define BLOCK_MAX (1u << 26)

/* args[0] of a record TRACE_WIRE_NUMBERS that ends a file. */
#define FILE_END UINT64_MAX

#define KEEP_MAX 100
#define EVENTS_LEN (256u << 10) /* of single events that are written at once */

struct trace_writer {
	char *path;
	int fd;
	uint64_t file_limit, file_len, total_len;
	uint64_t end_len; /* bytes that closing it takes: a number of each CPU, and that it ends there */
	unsigned keep;
	bool is_full;
	char *command;
	struct buf events;
	struct trace_join *join; /* knows what the next file has to begin with; null: there will be none */
};

static bool want_all(void *ctx, const struct trace_event *ev)
{
	return true;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static struct err *write_all(struct trace_writer *w, struct iovec *iov, int cnt)
{
	while (cnt) {
		ssize_t n = writev(w->fd, iov, cnt);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_os(n ? errno : ENOSPC, "%s", w->path);
		w->file_len += (uint64_t)n;
		w->total_len += (uint64_t)n;
		for (; cnt && (size_t)n >= iov->iov_len; iov++, cnt--)
			n -= (ssize_t)iov->iov_len;
		if (cnt) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return NULL;
}

static struct err *write_block(struct trace_writer *w, const void *bytes, size_t len)
{
	struct block_head h = {.magic = BLOCK_MAGIC, .len = (uint32_t)len, .xxh3 = XXH3_64bits(bytes, len)};
	struct iovec iov[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)bytes, len}};
	return len ? write_all(w, iov, 2) : NULL;
}

/* Names and values a line each; the records' members in words, for those who read them without scry. */
static struct err *write_head(struct trace_writer *w)
{
	_cleanup_buf_ struct buf b = {0};
	struct utsname u;
	struct timespec boot, real;
	if (uname(&u) < 0)
		memset(&u, 0, sizeof(u));
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &real);
	buf_printf(&b, "version 1\nwriter scry " SCRY_VERSION "\nmachine %s\nkernel %s\n", u.machine, u.release);
	buf_printf(&b, "epoch %lld\n", ((long long)real.tv_sec - boot.tv_sec) * 1000000000ll + (real.tv_nsec - boot.tv_nsec));
	buf_printf(&b, "frame len:u32 number:u32\n"
		       "record time:u64 tid:u32 seq:u32 nr:i32 cpu:u16 kind:u8 flags:u8 args:u64[6] ret:i64\n"
		       "timed ns:u64\n"
		       "user ip:u64 sp:u64 area_len:u16 stack_len:u16 bp_off:u32 stack:u8[area_len]\n"
		       "slot len:u16 arg:u8 how:u8 full:u32 bytes:u8[len]\n");
	if (w->command)
		buf_printf(&b, "command %s\n", w->command);
	while (b.len % 8)
		buf_add_ch(&b, '\n');
	if (b.failed || b.len > TEXT_MAX)
		return b.failed ? &err_nomem : err_new(ERR_INVALID, "the command that is traced is longer than a trace file can say");
	struct file_head h = {.order = FILE_ORDER, .text_len = (uint32_t)b.len};
	memcpy(h.magic, file_magic, sizeof(h.magic));
	struct iovec iov[2] = {{&h, sizeof(h)}, {b.data, b.len}};
	return write_all(w, iov, 2);
}

static struct err *open_file(struct trace_writer *w)
{
	w->fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return err_os(errno, "%s", w->path);
	w->file_len = 0;
	return write_head(w);
}

static void free_writer(struct trace_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	buf_fini(&w->events);
	trace_join_free(w->join);
	free(w->path);
	free(w->command);
	free(w);
}

struct err *trace_writer_new(const char *path, const struct trace_writer_options *opt, struct trace_writer **ret)
{
	struct trace_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return &err_nomem;
	uint64_t limit = opt->limit_len ? opt->limit_len : TRACE_FILE_DEFAULT_LEN;
	w->fd = -1;
	w->keep = MIN(opt->keep ? opt->keep : 1, (unsigned)KEEP_MAX);
	w->file_limit = limit / w->keep;
	w->end_len = 2 * sizeof(struct block_head) + (1 + (uint64_t)sysconf(_SC_NPROCESSORS_CONF)) * (TRACE_FRAME_LEN + sizeof(struct trace_wire));
	w->path = strdup(path);
	w->command = opt->command ? strdup(opt->command) : NULL;
	for (char *p = w->command; p && *p; p++)
		*p = *p == '\n' ? ' ' : *p;
	w->join = w->keep > 1 ? trace_join_new(want_all, NULL) : NULL;
	struct err *e = !w->path || (opt->command && !w->command) || (w->keep > 1 && !w->join) ? &err_nomem : open_file(w);
	if (e)
		free_writer(w);
	else
		*ret = w;
	return e;
}

static struct err *write_end(struct trace_writer *w)
{
	_cleanup_buf_ struct buf b = {0};
	struct trace_wire end = {.cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_WIRE_NUMBERS, .args = {FILE_END}};
	trace_record_end(&b, trace_record_begin(&b, &end));
	return b.failed ? &err_nomem : write_block(w, b.data, b.len);
}

/* PATH becomes PATH.1 and so on; the new one begins with what the join knows. */
static struct err *rotate(struct trace_writer *w)
{
	struct err *e = write_end(w);
	if (!e && close(w->fd) < 0)
		e = err_os(errno, "%s", w->path);
	w->fd = -1;
	size_t len = strlen(w->path) + 16;
	_cleanup_free_ char *from = malloc(len), *to = malloc(len);
	if (e || !from || !to)
		return e ? e : &err_nomem;
	for (unsigned i = w->keep - 1; i; i--) {
		snprintf(to, len, "%s.%u", w->path, i);
		snprintf(from, len, i > 1 ? "%s.%u" : "%s", w->path, i - 1);
		if (rename(from, to) < 0 && errno != ENOENT)
			return err_os(errno, "%s", to);
	}
	e = open_file(w);
	_cleanup_buf_ struct buf b = {0};
	trace_join_snapshot(w->join, &b);
	return e ? e : b.failed ? &err_nomem : write_block(w, b.data, b.len);
}

/* Bytes of whole records at the beginning of a chunk, at most `max` unless the first one is longer. */
static size_t piece_of(const uint8_t *chunk, size_t len, size_t max)
{
	size_t at = 0;
	while (len - at >= TRACE_FRAME_LEN) {
		uint64_t next = at + trace_frame_len(load_u32(chunk + at, false));
		if (next > len || (at && next > max))
			break;
		at = (size_t)next;
	}
	return at ? at : len;
}

static struct err *write_piece(struct trace_writer *w, const uint8_t *chunk, size_t len)
{
	struct err *e = NULL;
	if (len > BLOCK_MAX)
		return err_new(ERR_INTERNAL, "a chunk of %zu bytes for a trace file", len);
	if (w->file_len + len + sizeof(struct block_head) + w->end_len > w->file_limit) {
		w->is_full = w->keep == 1;
		e = w->is_full ? NULL : rotate(w);
	}
	if (!e && !w->is_full)
		e = write_block(w, chunk, len);
	bool more;
	return e ? e : w->join ? trace_join_chunk(w->join, chunk, len, &more) : NULL;
}

struct err *trace_writer_chunk(void *ctx, const uint8_t *chunk, size_t len)
{
	struct trace_writer *w = ctx;
	struct err *e = NULL;
	/* In pieces that are small beside a file, so that what is left out at its end is little. */
	size_t max = MIN(w->file_limit / 8, BLOCK_MAX);
	while (!e && !w->is_full && len) {
		size_t piece = len <= max ? len : piece_of(chunk, len, (size_t)max);
		e = write_piece(w, chunk, piece);
		chunk += piece;
		len -= piece;
	}
	return e;
}

static struct err *flush_events(struct trace_writer *w)
{
	struct err *e = w->events.failed ? &err_nomem : trace_writer_chunk(w, (const uint8_t *)w->events.data, w->events.len);
	w->events.len = 0;
	return e;
}

struct err *trace_writer_event(struct trace_writer *w, const struct trace_event *ev)
{
	trace_encode(ev, &w->events);
	return w->events.len >= EVENTS_LEN || w->events.failed ? flush_events(w) : NULL;
}

bool trace_writer_is_full(const struct trace_writer *w)
{
	return w->is_full;
}

uint64_t trace_writer_len(const struct trace_writer *w)
{
	return w->total_len;
}

struct err *trace_writer_close(struct trace_writer *w, const struct trace_cpu *cpus, size_t cnt)
{
	if (!w)
		return NULL;
	struct err *e = flush_events(w);
	/* What the limit kept out is missing from the file and was not lost before. */
	_cleanup_buf_ struct buf b = {0};
	for (size_t i = 0; !e && i < cnt; i++) {
		struct trace_wire r = {.cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_WIRE_NUMBERS, .args = {i, cpus[i].seen, w->is_full}};
		trace_record_end(&b, trace_record_begin(&b, &r));
	}
	if (!e)
		e = b.failed ? &err_nomem : write_block(w, b.data, b.len);
	if (!e)
		e = write_end(w);
	if (w->fd >= 0 && close(w->fd) < 0 && !e)
		e = err_os(errno, "%s", w->path);
	w->fd = -1;
	free_writer(w);
	return e;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct trace_file {
	struct file *file; /* null: the caller's bytes */
	const uint8_t *bytes;
	size_t len;
	size_t records_off;
	char *text;
	uint64_t hashed_len; /* bytes that turned out to be damaged */
};

/* Of a file made of nothing but beginnings of blocks every byte would be hashed again and again. */
#define HASHED_TIMES 16

static struct err *read_head(struct trace_file *f)
{
	struct file_head h;
	struct cur c = cur_make(f->bytes, f->len, false);
	const uint8_t *p = cur_bytes(&c, sizeof(h));
	if (!p || memcmp(p, file_magic, sizeof(file_magic)))
		return err_new(ERR_BAD_INPUT, "not a trace file");
	memcpy(&h, p, sizeof(h));
	if (h.order != FILE_ORDER)
		return err_new(ERR_BAD_INPUT, "a trace file of a machine with another byte order");
	const uint8_t *text = h.text_len <= TEXT_MAX ? cur_bytes(&c, h.text_len) : NULL;
	if (!text)
		return err_new(ERR_BAD_INPUT, "the header of this trace file is cut or damaged");
	f->text = strndup((const char *)text, h.text_len);
	if (!f->text)
		return &err_nomem;
	f->records_off = c.pos;
	size_t len;
	const char *version = trace_file_field(f, "version", &len);
	if (!version || len != 1 || *version != '1')
		return err_new(ERR_BAD_INPUT, "a trace file of another version");
	return NULL;
}

struct err *trace_file_open_bytes(const uint8_t *bytes, size_t len, struct trace_file **ret)
{
	struct trace_file *f = calloc(1, sizeof(*f));
	if (!f)
		return &err_nomem;
	f->bytes = bytes;
	f->len = len;
	struct err *e = read_head(f);
	if (e)
		trace_file_free(f);
	else
		*ret = f;
	return e;
}

struct err *trace_file_open(const char *path, struct trace_file **ret)
{
	struct file *file;
	struct err *e = file_open(path, &file);
	if (e)
		return e;
	e = trace_file_open_bytes(file->data, file->len, ret);
	if (e) {
		file_close(file);
		return err_prefix(e, "%s", path);
	}
	(*ret)->file = file;
	return NULL;
}

void trace_file_free(struct trace_file *f)
{
	if (!f)
		return;
	file_close(f->file);
	free(f->text);
	free(f);
}

const char *trace_file_header(const struct trace_file *f)
{
	return f->text;
}

const char *trace_file_field(const struct trace_file *f, const char *name, size_t *ret_len)
{
	size_t name_len = strlen(name);
	for (const char *p = f->text; *p;) {
		size_t len = strcspn(p, "\n");
		if (len > name_len && !memcmp(p, name, name_len) && p[name_len] == ' ') {
			*ret_len = len - name_len - 1;
			return p + name_len + 1;
		}
		p += len + (p[len] == '\n');
	}
	return NULL;
}

int64_t trace_file_epoch(const struct trace_file *f)
{
	size_t len;
	const char *v = trace_file_field(f, "epoch", &len);
	return v ? strtoll(v, NULL, 10) : 0;
}

/* The records of the block at `off`, whole and undamaged; null: there is none. */
static const uint8_t *block_at(struct trace_file *f, size_t off, uint32_t *ret_len)
{
	struct cur c = cur_make(f->bytes, f->len, false);
	cur_seek(&c, off);
	const uint8_t *p = cur_bytes(&c, sizeof(struct block_head));
	struct block_head h;
	if (!p)
		return NULL;
	memcpy(&h, p, sizeof(h));
	const uint8_t *bytes = h.magic == BLOCK_MAGIC && h.len && h.len % 8 == 0 && h.len <= BLOCK_MAX ? cur_bytes(&c, h.len) : NULL;
	if (!bytes || f->hashed_len / HASHED_TIMES > f->len)
		return NULL;
	if (XXH3_64bits(bytes, h.len) != h.xxh3) {
		f->hashed_len += h.len;
		return NULL;
	}
	*ret_len = h.len;
	return bytes;
}

/* Whether the block is the mark of the end. */
static bool is_end(const uint8_t *block, uint32_t len)
{
	struct cur c = cur_make(block, len, false);
	uint32_t rec_len = 0;
	const uint8_t *rec = trace_frame_next(&c, &rec_len);
	struct trace_wire w;
	if (!rec || rec_len != sizeof(w))
		return false;
	memcpy(&w, rec, sizeof(w));
	return w.kind == TRACE_WIRE_NUMBERS && w.args[0] == FILE_END;
}

struct err *trace_file_each(struct trace_file *f, trace_sink_fn *sink, void *ctx, struct trace_totals *ret)
{
	struct trace_join *j = trace_join_new(sink, ctx);
	if (!j)
		return &err_nomem;
	struct err *e = NULL;
	bool more = true, has_end = false, is_damaged = false;
	f->hashed_len = 0;
	for (size_t off = f->records_off; !e && more && !has_end && off < f->len;) {
		uint32_t len = 0;
		const uint8_t *block = block_at(f, off, &len);
		if (!block) { /* the next one is looked for */
			if (!is_damaged)
				trace_join_damage(j);
			is_damaged = true;
			off += 8;
			continue;
		}
		is_damaged = false;
		has_end = is_end(block, len);
		if (!has_end)
			e = trace_join_chunk(j, block, len, &more);
		off += sizeof(struct block_head) + len;
	}
	if (!e && more && !has_end && !is_damaged)
		trace_join_damage(j);
	if (!e)
		trace_join_left(j);
	if (!e && f->file && file_has_changed(f->file))
		e = err_new(ERR_BAD_INPUT, "%s was changed while it was read", f->file->path);
	if (ret)
		*ret = trace_join_totals(j);
	trace_join_free(j);
	return e;
}
