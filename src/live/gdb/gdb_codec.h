/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_GDB_GDB_CODEC_H
#define LIVE_GDB_GDB_CODEC_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The gdb remote serial protocol as a codec, for clients and servers: bytes to packets and back, without any I/O. The rules are those of
 * "Debugging with GDB", appendix E, sections E.1 (packets, escaping, run lengths), E.9 (acknowledgements), E.11 (file I/O numbers), and
 * of LLDB's extensions. Every byte given to it may be hostile: each function is bounded by the length of its input and the room it is given.
 *
 * A packet travels as `$` RAW `#` and two hex digits, the sum of RAW's bytes modulo 256. RAW is the payload after escaping and, in
 * replies, run-length encoding; both are undone by gdb_expand(), in that order: run lengths first.
 */

/* --- receiving --- */

/* What gdb_decoder_next() found. */
enum gdb_item {
	GDB_MORE,	  /* nothing whole yet: feed more bytes */
	GDB_PACKET,	  /* a packet with a good checksum */
	GDB_NOTIFICATION, /* `%...#xx`, which nobody acknowledges */
	GDB_ACK,	  /* `+` */
	GDB_NAK,	  /* `-`: the other side wants its last packet again */
	GDB_INTERRUPT,	  /* 0x03 outside a packet: a client wants the target stopped */
	GDB_BAD_SUM,	  /* a packet whose checksum does not fit; in ack mode the answer is `-` */
	GDB_TOO_LONG,	  /* no end within the limit, or memory ran out; nothing more comes from this decoder */
};

#define GDB_MAX_RAW_LEN (40u << 20) /* longest raw payload taken by default, bytes */

/* Bytes in, items out. Zero-initialise, set what you need; gdb_decoder_fini() releases. */
struct gdb_decoder {
	struct buf in;	     /* bytes fed; what is before `pos` is done with */
	size_t pos;
	size_t scanned_len;  /* of the packet at `pos`: bytes known to hold no `#` */
	size_t max_raw_len;  /* longest raw payload; 0 is GDB_MAX_RAW_LEN */
	uint64_t junk_cnt;   /* bytes between packets that were nothing */
	bool is_noack;	     /* no-ack mode was agreed: a checksum of `00` is not compared, since nobody could ask again */
	bool is_failed;	     /* after GDB_TOO_LONG */
};

struct gdb_packet {
	const uint8_t *raw; /* borrowed from the decoder until gdb_decoder_room() or _fini() */
	size_t raw_len;
};

void gdb_decoder_fini(struct gdb_decoder *d);

/* Where up to `want_len` bytes may be written; null when memory ran out. Takes back packets given before. */
uint8_t *gdb_decoder_room(struct gdb_decoder *d, size_t want_len);

/* Says that `len` bytes were written there. */
static inline void gdb_decoder_filled(struct gdb_decoder *d, size_t len)
{
	d->in.len += len;
}

/* The next item; `ret` is set for GDB_PACKET and GDB_NOTIFICATION. Costs one look at each byte, however they come in. */
enum gdb_item gdb_decoder_next(struct gdb_decoder *d, struct gdb_packet *ret);

/* How gdb_expand() ended. */
enum gdb_expand {
	GDB_EXPAND_OK,
	GDB_EXPAND_BAD,	  /* an escape without a byte, a run of nothing or without a count */
	GDB_EXPAND_LIMIT, /* longer than the room */
};

/*
 * Undoes run lengths (when `has_runs`: replies have them, requests do not) and escapes, in bulk: stretches without either are copied.
 * Writes at most `cap` bytes to `dst`, which does not overlap `raw`; `*ret_len` is set on success.
 */
enum gdb_expand gdb_expand(const uint8_t *raw, size_t raw_len, bool has_runs, uint8_t *dst, size_t cap, size_t *ret_len);

/* The same, appended to `out`, at most `max_len` bytes. LIMIT also when memory ran out. */
enum gdb_expand gdb_expand_buf(const uint8_t *raw, size_t raw_len, bool has_runs, size_t max_len, struct buf *out);

/* --- sending --- */

/* Sum of the bytes modulo 256. */
uint8_t gdb_sum(const uint8_t *bytes, size_t len);

/* Begins a packet in `out`; gives its start, for gdb_end(). In between the payload is appended, escaped where it may hold `#`, `$`, `}` or `*`. */
size_t gdb_begin(struct buf *out);
/* Ends it: `#` and the checksum of what was appended since. */
void gdb_end(struct buf *out, size_t start);

/* A whole packet with a payload that needs no escaping. */
void gdb_put(struct buf *out, const char *payload);

/* Appends `len` bytes escaped: `#`, `$`, `}` and `*` become `}` and the byte xor 0x20. In bulk. */
void gdb_escape(struct buf *out, const void *bytes, size_t len);

/* How many of `len` bytes gdb_escape() may take so that they become at most `room_len`. */
size_t gdb_escape_fit(const void *bytes, size_t len, size_t room_len);

/* --- pieces of payloads --- */

/* A piece of a payload, borrowed. */
struct gdb_span {
	const char *s;
	size_t len;
};

static inline struct gdb_span gdb_span_make(const void *s, size_t len)
{
	return (struct gdb_span){.s = s, .len = len};
}

bool gdb_span_is(struct gdb_span s, const char *text);
bool gdb_span_starts(struct gdb_span s, const char *text);

/* If `s` starts with `text`, takes it away. */
bool gdb_skip(struct gdb_span *s, const char *text);

/* Takes the next field of `*rest`, up to `sep` (taken, too) or the end; false when nothing is left. */
bool gdb_next_field(struct gdb_span *rest, char sep, struct gdb_span *ret);

/* Splits at the first `sep`; false (and `*ret_value` empty) when there is none. */
bool gdb_split(struct gdb_span s, char sep, struct gdb_span *ret_key, struct gdb_span *ret_value);

/* Finds `key` in `key:value;key:value;...`. */
bool gdb_find_pair(struct gdb_span pairs, const char *key, struct gdb_span *ret_value);

/* The value of a hex digit, -1 for another character. */
static inline int gdb_digit(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	if (ch >= 'a' && ch <= 'f')
		return ch - 'a' + 10;
	return ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* Takes a hex number of 1 to 16 digits (leading zeros beyond are accepted) from the front. */
bool gdb_take_hex(struct gdb_span *s, uint64_t *ret);
/* The same in decimal. */
bool gdb_take_dec(struct gdb_span *s, uint64_t *ret);
/* The whole of `s` is such a number. */
bool gdb_is_hex(struct gdb_span s, uint64_t *ret);
bool gdb_is_dec(struct gdb_span s, uint64_t *ret);

/* Appends the bytes that `hex` spells; false for an odd length, another character or more than `max_len` bytes. */
bool gdb_unhex(struct gdb_span hex, size_t max_len, struct buf *out);

/* Whether an expanded reply is an error: `Exx`, `Exx;HEXTEXT` or `E.TEXT`. `text` (may be null) gets the text, made printable ASCII. */
bool gdb_is_error(struct gdb_span reply, unsigned *ret_code, struct buf *text);

/* --- what a server can do --- */

struct gdb_features {
	uint64_t packet_len;  /* longest packet the server takes, bytes, `$`, `#` and sum included; 0 unknown */
	bool has_noack;	      /* QStartNoAckMode+ */
	bool has_echo;	      /* qEcho+ */
	bool has_multiprocess, has_vcont, has_swbreak, has_hwbreak;
	bool has_target_xml, has_auxv, has_libraries_svr4, has_exec_file, has_memory_map, has_pass_signals;
	bool has_binary_upload; /* `x` of GDB: `b` before the data */
	bool is_lldb;		/* LLDB's extensions are among them */
	bool is_scry;		/* our own server, whose extensions gdb_codec.h names */
	bool has_zread;		/* vFile:zread, see gdb_vfile_op */
};

/*
 * Reads an expanded reply to qSupported. PacketSize is hex, but lldb-server writes decimal digits ("131072"): from a server with LLDB's
 * extensions that is not ours the smaller reading is taken, which no server minds.
 */
void gdb_features_read(struct gdb_span reply, struct gdb_features *ret);

/* --- files --- */

/* The vFile packets. ZREAD is our own: a pread whose answer may be compressed. */
enum gdb_vfile_op {
	GDB_VFILE_OPEN,
	GDB_VFILE_CLOSE,
	GDB_VFILE_PREAD,
	GDB_VFILE_ZREAD,    /* `vFile:zread:FD,COUNT,OFFSET` like pread; answered as pread, or `Z<count>;` and one zstd frame of count bytes */
	GDB_VFILE_PWRITE,
	GDB_VFILE_FSTAT,
	GDB_VFILE_STAT,
	GDB_VFILE_LSTAT,
	GDB_VFILE_SIZE,
	GDB_VFILE_MODE,
	GDB_VFILE_EXISTS,
	GDB_VFILE_MD5,
	GDB_VFILE_XXH3,	    /* our own: `F,` and the 32 digits of XXH3-128, most significant first; finds accidents at a tenth of MD5's cost */
	GDB_VFILE_SHA256,   /* our own: `F,` and 64 digits */
	GDB_VFILE_READLINK,
	GDB_VFILE_UNLINK,
	GDB_VFILE_SYMLINK,
	GDB_VFILE_SETFS,
	GDB_VFILE_OP_COUNT
};

/* Flags of vFile:open (E.13.9.2 "Open Flags"); LLDB adds bits of its own, which a server masks. */
enum {
	GDB_O_RDONLY = 0x0,
	GDB_O_WRONLY = 0x1,
	GDB_O_RDWR = 0x2,
	GDB_O_APPEND = 0x8,
	GDB_O_CREAT = 0x200,
	GDB_O_TRUNC = 0x400,
	GDB_O_EXCL = 0x800,
	GDB_O_KNOWN = GDB_O_WRONLY | GDB_O_RDWR | GDB_O_APPEND | GDB_O_CREAT | GDB_O_TRUNC | GDB_O_EXCL,
};

#define GDB_MAX_PATH_LEN 4096

/* One request. Which fields count depends on the operation. */
struct gdb_vfile {
	enum gdb_vfile_op op;
	uint64_t fd;	      /* CLOSE PREAD ZREAD PWRITE FSTAT; the process id of SETFS */
	uint64_t count;	      /* bytes wanted: PREAD ZREAD */
	uint64_t off;	      /* bytes from the start of the file: PREAD ZREAD PWRITE */
	uint32_t flags, mode; /* OPEN */
	char path[GDB_MAX_PATH_LEN];   /* what has a path; SYMLINK: what the link leads to */
	char path2[GDB_MAX_PATH_LEN];  /* SYMLINK: the link */
	struct gdb_span data;	       /* PWRITE, borrowed */
};

/* Appends the payload of `req` (escaped where it must be) to an open packet. */
void gdb_vfile_put(struct buf *out, const struct gdb_vfile *req);

/* Reads the expanded payload of a request. False: no vFile packet, an unknown one, or malformed; `*ret_is_known` tells the last from the others. */
bool gdb_vfile_read(struct gdb_span payload, struct gdb_vfile *ret, bool *ret_is_known);

/* An answer `F result[,errno][;data]` (E.13.9), or `Z...` of ZREAD. */
struct gdb_vfile_reply {
	int64_t result;	      /* -1 on failure */
	unsigned gdb_errno;   /* as it stands in the packet; 0 none */
	bool is_compressed;   /* data is one zstd frame of `result` bytes */
	bool has_data;	      /* a `;` was there */
	struct gdb_span data; /* borrowed */
};

/* Reads an expanded answer; false when it is none (empty: not supported; `E`: see gdb_is_error()). */
bool gdb_vfile_reply_read(struct gdb_span payload, struct gdb_vfile_reply *ret);

/* Appends the payload of an answer without data to an open packet: `F<result>` or `F-1,<errno>`. `os_errno` is the host's, 0 for success. */
void gdb_vfile_reply_put(struct buf *out, int64_t result, int os_errno);

/* Numbers of errors in packets (E.13.9.4 "Errno Values"). What has none there travels as Linux' number, as lldb-server sends it; EIO for nonsense. */
unsigned gdb_errno_put(int os_errno);
int gdb_errno_read(unsigned gdb_errno);

/* struct stat as vFile:fstat has it (E.13.9.5): 64 bytes, big-endian. */
#define GDB_STAT_LEN 64
struct gdb_stat {
	uint32_t dev, ino, mode, nlink, uid, gid, rdev;
	uint64_t size, blksize, blocks;
	uint32_t atime, mtime, ctime; /* seconds */
};
bool gdb_stat_read(struct gdb_span data, struct gdb_stat *ret);
void gdb_stat_put(uint8_t out[GDB_STAT_LEN], const struct gdb_stat *st);

/* Answer to vFile:MD5, `F,` and 32 hex digits, in which LLDB turns round each half of the digest; `F,x` is no answer. */
bool gdb_md5_read(struct gdb_span reply, uint8_t ret_md5[16]);
void gdb_md5_put(struct buf *out, const uint8_t md5[16]);

#endif
