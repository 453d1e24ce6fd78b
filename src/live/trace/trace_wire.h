/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_WIRE_H
#define LIVE_TRACE_WIRE_H

#include <stdint.h>

/*
 * The record of the ring and of trace files: what the kernel's side writes and user space reads. Included by both, so
 * it has fixed-width members only and every struct is free of padding. Numbers are in the machine's byte order (the
 * header of a trace file says which).
 *
 *     trace_wire (80 bytes) | u64 ns of the call (if TRACE_WIRE_TIMED) | trace_wire_user + stack (if TRACE_WIRE_USER)
 *     | slots: trace_wire_slot + bytes, 8-aligned
 *
 * A slot can be skipped by who does not know it. Records whose cpu is TRACE_WIRE_NO_CPU were made by user space and
 * take no part in the numbering. Everything but the kernel's own ring is hostile: trace_decode.h reads it.
 */
struct trace_wire {
	uint64_t time;    /* ns of the boot clock */
	uint32_t tid;     /* as the first pid namespace numbers it */
	uint32_t seq;     /* number of the record on its CPU from 1, lost ones counted; wraps */
	int32_t nr;       /* system call; other kinds 0 */
	uint16_t cpu;
	uint8_t kind;     /* enum trace_kind */
	uint8_t flags;    /* TRACE_WIRE_* */
	uint64_t args[6];
	int64_t ret;
};

enum {
	TRACE_WIRE_ENTRY = 1 << 0, /* the call has begun */
	TRACE_WIRE_USER = 1 << 1,  /* trace_wire_user and stack follow */
	TRACE_WIRE_TIMED = 1 << 2,
	TRACE_WIRE_EXACT = 1 << 3, /* statuses are as they are; else an input with status ok was read when the call had ended */
	TRACE_WIRE_ABI_SHIFT = 4,  /* two bits of enum trace_abi */
	TRACE_WIRE_NO_CPU = 0xffff,
};

struct trace_wire_user {
	uint64_t ip;
	uint64_t sp;
	uint16_t area_len;  /* bytes that follow, a multiple of 8 */
	uint16_t stack_len; /* the first of them that were read from sp on */
	uint32_t bp_off;    /* lower half of frame pointer less sp: of use where it points into the stack that was read */
};

struct trace_wire_slot {
	uint16_t len;  /* bytes that follow, then up to 7 to the next multiple of 8 */
	uint8_t arg;   /* 0-5, enum trace_event's TRACE_ARG_*, or TRACE_WIRE_ARG_* */
	uint8_t how;   /* status | part << 3 | phase << 6 | reversed << 7 */
	uint32_t full; /* bytes there were, 0 = not known */
};

enum {
	TRACE_WIRE_STATUS_MASK = 7,
	TRACE_WIRE_PART_SHIFT = 3,
	TRACE_WIRE_PHASE_SHIFT = 6,
	TRACE_WIRE_REVERSED = 0x80, /* a path as its components, last one first, each with its NUL; not in records of calls */
	TRACE_WIRE_HASHED = 0x80,   /* in records of calls alone */
};

/* A kind of record beside those of events: args are a CPU, the last number it has given, and 1 if what is missing up to
 * that was left out of the file. */
#define TRACE_WIRE_NUMBERS 0x80

/* Slots beside TRACE_ARG_*: FILE and AUXV are passed on for those who want to know what is mapped (trace_site.h). STACK is more of the
 * stack than stands behind trace_wire_user, from sp on as that is. */
enum { TRACE_WIRE_ARG_PROC = 24, TRACE_WIRE_ARG_AUXV, TRACE_WIRE_ARG_CONTAINER, TRACE_WIRE_ARG_FILE, TRACE_WIRE_ARG_NS, TRACE_WIRE_ARG_STACK };

/*
 * In a call's record a slot with TRACE_WIRE_HASHED is a string that was read when the call had ended; `full` is the hash of what was
 * there when it began, 0 where that was not read. What was there itself would make another record of every call with a path.
 */
#define TRACE_PATH_BLOCK 32

/* One word of the hash of `len` bytes, as many zeros behind them as make it a multiple of TRACE_PATH_BLOCK; begin with `len`. */
static inline __attribute__((always_inline)) uint64_t trace_path_step(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

/* And its end: never 0. */
static inline __attribute__((always_inline)) uint32_t trace_path_hash(uint64_t hash)
{
	return (uint32_t)(hash >> 32) | 1;
}

/* What is known of a thread when it was made, became another program, or was found. */
struct trace_wire_proc {
	uint64_t start;  /* ns of the boot clock at which it was made: with tid, it names a thread for good */
	uint64_t cgroup; /* id of its cgroup in the unified hierarchy, 0 = not known */
	uint32_t tgid, ppid, uid, gid;
	uint32_t pid_ns, mnt_ns; /* inode numbers */
	char comm[16];
};

/* Of a mapped or executed file. */
struct trace_wire_file {
	uint64_t ino;
	uint32_t dev;   /* as the kernel has it: major << 20 | minor */
	uint32_t nlink; /* 0: nothing on disk has this name any more */
};

/* Longest record that is read; what the kernel's side writes is shorter. */
#define TRACE_WIRE_MAX (1u << 16)

/* ---- How the kernel's side is told what to do; user space fills these in before it loads the programs. ---- */

#define TRACE_IDS 512     /* the last stands for every number above */
#define TRACE_CPUS 4096
#define TRACE_TIDS (1u << 22)
#define TRACE_BEGUN 65536
#define TRACE_STACK_SMALL 256   /* bytes of stack that are read at once */
#define TRACE_STACK_DEEP 2048   /* and at most; a record has no slot for these */
#define TRACE_NEAR (4ull << 20) /* bytes between addresses that may be of one library */
#define TRACE_LIMIT_MAX 4096 /* bytes of one string or buffer */
#define TRACE_MATCH_MAX 16
#define TRACE_CONTAINERS 8192  /* cgroups of containers that are known at once */
#define TRACE_CONTAINER_LEN 64 /* hexadecimal digits of a container's id */

/* How what a pointer leads to is read. */
enum trace_read {
	TRACE_READ_BYTES,
	TRACE_READ_STR,
	TRACE_READ_STRV,
	TRACE_READ_DATA, /* what the iovecs of the base lead to */
};

enum {
	TRACE_READ_IN = 1 << 0,       /* read by the kernel */
	TRACE_READ_OUT = 1 << 1,      /* written when the call works; IN and OUT: what is there is the one or the other */
	TRACE_READ_BY_RET = 1 << 2,   /* written as far as the result says */
	TRACE_READ_COMPAT = 1 << 3,   /* pointers in memory have 4 bytes */
	TRACE_READ_IS_BASE = 1 << 4,  /* rows behind this one may refer to what it reads */
	TRACE_READ_SRC_BASE = 1 << 5, /* src is an offset in that */
	TRACE_READ_CNT_BASE = 1 << 6, /* cnt is, if it is no TRACE_OFF_ONE */
	TRACE_READ_CNT_32 = 1 << 7,   /* the number has 32 bits */
};

/* Offsets `src` and `cnt` have, else: in the framed record, of the argument registers; and what stands for a 1. */
#define TRACE_OFF_ARGS 32
#define TRACE_OFF_ONE 0

/* One row: a pointer and what is read there. Rows are in the order of work, which need not be that of arguments. */
struct trace_read_arg {
	uint32_t how;   /* arg << 16 | part << 27, as a slot has them */
	uint8_t read;   /* enum trace_read */
	uint8_t flags;
	uint8_t src;    /* where the pointer is */
	uint8_t cnt;    /* and the number of elements */
	uint16_t size;  /* bytes of an element; 0 for strings and their arrays */
	uint16_t copy;  /* most bytes of the first copy: of strings two more than are wanted */
	uint16_t limit; /* most bytes of what an array's pointers lead to */
	uint16_t least; /* smaller values are no pointers */
};

#define TRACE_ROWS 7
#define TRACE_PATH_CNT 2
#define TRACE_NO_PATH 0xff

enum {
	TRACE_DESC_ENTRY_SLOTS = 1 << 0, /* its arguments are read at entry, too */
	TRACE_DESC_HIDDEN = 1 << 1,      /* nobody asked for it but for the sake of DESC_MAPS or DESC_JUDGE */
	TRACE_DESC_ENTRY = 1 << 2,       /* it has a record at its beginning, too */
	TRACE_DESC_PATHS = 1 << 3,       /* and its strings are looked at then */
	/* From here on what only the program TRACE_RARE_FULL does. */
	TRACE_DESC_MORE = 1 << 4,        /* its records have cfg.stack_more */
	TRACE_DESC_DEEP = 1 << 5,        /* and these TRACE_STACK_DEEP bytes of the stack */
	TRACE_DESC_MAPS = 1 << 6,        /* mmap and its like: may make code */
	TRACE_DESC_JUDGE = 1 << 7,       /* it may change whether its thread is recorded */
};

/* What is kept of a call of a thread until it has ended. */
struct trace_begun {
	uint64_t time;
	uint64_t paths; /* hashes of its strings, the first one in the lower half */
	uint64_t tid;   /* whose it is: threads whose numbers have the same lower bits push each other out and go without */
};

struct trace_desc {
	uint8_t cnt;
	uint8_t flags;
	uint8_t fd_arg; /* of DESC_MAPS: argument with the descriptor; 7: none */
	uint8_t reserved;
	uint32_t paths;  /* of DESC_PATHS: its hashed strings' arguments, a byte each from the lowest; TRACE_NO_PATH: there is none more */
	struct trace_read_arg rows[TRACE_ROWS];
};

/* A predicate of processes: the values of one kind, of which one must fit. */
struct trace_match_ids {
	uint32_t cnt;
	uint32_t reserved;
	uint64_t ids[TRACE_MATCH_MAX];
};

struct trace_config {
	uint32_t flags;      /* TRACE_WIRE_USER: ip, sp and stack are recorded; TRACE_WIRE_TIMED: durations are */
	uint32_t stack_len;  /* bytes of stack, a multiple of 8 up to TRACE_STACK_SMALL, */
	uint32_t stack_more; /* behind that in every record, */
	uint32_t stack_deep; /* and where code calls code that is near; with stack_len up to TRACE_STACK_DEEP */
	uint32_t fixed_len;  /* bytes of a record before its stack and slots */
	uint32_t follow;     /* children of what is recorded are */
	uint32_t invert;     /* the thread bitmap says who is not recorded */
	uint32_t with_signals;
	uint32_t match;      /* bits of enum trace_match: predicates that must hold */
	uint32_t comm_cnt;
	uint32_t path_size;  /* bytes that are read of DESC_PATHS' strings at the beginning */
	uint32_t tracer;     /* the thread that opened this: it takes its own name again for its root to be looked at */
	uint32_t seg_cnt;    /* segments of a CPU's ring */
	uint32_t seg_len;    /* bytes of each in which a record may begin */
	uint32_t ring_last;  /* all begin before this offset behind TRACE_RING_HEAD */
	uint32_t reserved2;
	struct trace_match_ids uid, cgroup, pid_ns, mnt_ns, exe; /* exe: inode numbers, with the device in exe_dev */
	uint32_t exe_dev[TRACE_MATCH_MAX];
	char comm[TRACE_MATCH_MAX][16];
	uint32_t container_len;            /* bytes of the beginning of a container's id */
	uint32_t reserved3;
	char container[TRACE_CONTAINER_LEN];
	struct trace_desc desc[2][TRACE_IDS]; /* x86-64 (arm64), i386 */
};

enum trace_match {
	TRACE_MATCH_UID = 1 << 0,
	TRACE_MATCH_CGROUP = 1 << 1,
	TRACE_MATCH_PID_NS = 1 << 2,
	TRACE_MATCH_MNT_NS = 1 << 3,
	TRACE_MATCH_EXE = 1 << 4,
	TRACE_MATCH_COMM = 1 << 5,
	TRACE_MATCH_CONTAINER = 1 << 6,
};

/* What a cgroup is known by: its id and that of its hierarchy, 0 of the unified one. */
static inline __attribute__((always_inline)) uint64_t trace_cgroup_key(uint64_t id, uint32_t hierarchy)
{
	return id ^ (uint64_t)hierarchy << 56;
}

/* Programs that others go on to. */
enum trace_rare { TRACE_RARE_COMPAT, TRACE_RARE_AFTER, TRACE_RARE_TURN, TRACE_RARE_AGAIN, TRACE_RARE_FULL, TRACE_RARE_CNT };

/*
 * The ring of one CPU, which alone writes to it, is made of segments. The first that is free is filled next: as long as who reads keeps up
 * these are the same few, and stay in the cache. Records are framed (trace_frame.h) and lie one behind the other; each begins
 * in the first seg_len bytes of its segment and may take TRACE_RING_RECORD bytes from there, so none has a seam. Before them
 * are TRACE_RING_HEAD bytes: a page of the kernel's side, struct trace_turns, and room for what is read and not recorded.
 */
#define TRACE_RING_HEAD 16384
#define TRACE_RING_TURNS 4096
#define TRACE_RING_SCRATCH 8192
#define TRACE_RING_RECORD 45056 /* what one record may take, with what is put down behind it meanwhile */
#define TRACE_RING_MIN 65536
#define TRACE_SEGMENTS 64
#define TRACE_TURNS 128 /* more than there are segments: what was not read is not overwritten */

/* Which segments were filled, one in each turn. Turn 0 has none. */
struct trace_turns {
	struct { uint32_t begin, end; } turns[TRACE_TURNS]; /* by the turn's lower bits: offsets behind TRACE_RING_HEAD, the end once it is over */
	uint64_t used[TRACE_SEGMENTS]; /* by segment: one more than its last turn */
	uint64_t turn;                 /* this one */
};

/* What one CPU has counted. seen = records in its ring + lost, always. */
struct trace_cpu {
	uint64_t seen;
	uint64_t lost; /* because there was no free segment */
	uint64_t head; /* turn << 32 | offset behind TRACE_RING_HEAD where the next record begins */
	uint64_t room; /* which must be less than this */
	uint64_t tail; /* turns that were read: written by user space alone */
	uint64_t reserved[3]; /* no two CPUs write to one cache line */
};

/* What both sides touch while it runs: the only writable globals. */
struct trace_shared {
	uint64_t exit_ids[2][TRACE_IDS / 64];  /* by ABI: calls with a record at their end */
	uint64_t enter_ids[2][TRACE_IDS / 64]; /* and calls that are looked at when they begin */
	struct trace_cpu cpu[TRACE_CPUS];
	uint64_t threads[TRACE_TIDS / 64];
	uint64_t root_mnt, root_dentry; /* the tracer's root, where paths begin; 0: not known yet */
	struct trace_begun begun[TRACE_BEGUN]; /* found by the lower bits of the thread's number */
};

#endif
