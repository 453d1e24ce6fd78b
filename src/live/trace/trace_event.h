/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_EVENT_H
#define LIVE_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One event of a trace, as every source (eBPF, ptrace, a trace file) gives it and text, JSON, filters and
 * rules take it. Nothing here owns memory: pointers are valid until the sink that got the event returns.
 *
 * All bytes behind pointers are the traced program's and untrusted; strings of `slots` need not end in NUL.
 * What is not known is marked as such and never 0: see trace_status and the fields that say "0 = not known".
 */
enum trace_kind {
	TRACE_SYSCALL, /* a system call that ended, or (unfinished) has begun */
	TRACE_EXEC,    /* another program runs in the process: exe; slots as TRACE_ARG_* */
	TRACE_FORK,    /* ret is the tid of the new thread; args[0] its clone flags, args[1] its tgid */
	TRACE_EXIT,    /* ret is the wait status (exit code << 8 | signal); args[0] is 1 for the last thread */
	TRACE_MMAP,    /* executable mapping: args are address, length, protection, flags, file offset; slot 0 the path */
	TRACE_SIGNAL,  /* delivered: args are signal, si_code, si_pid or fault address, and TRACE_SIGNAL_BARE or 0 */
	TRACE_PROBE,   /* args[0] is the probe's number, args[1..] and slots what it asked for */
	TRACE_LOST,    /* records that are missing here: lost */
	TRACE_PROCESS, /* what is known of a process that was there before the trace: comm, exe, container, ppid */
	TRACE_KIND_COUNT
};

#define TRACE_SIGNAL_BARE 1 /* neither is known */

/* How a slot was read. */
enum trace_status {
	TRACE_OK,        /* whole, at the right moment */
	TRACE_ABSENT,    /* not read: null pointer, not recorded, or switched off; no data */
	TRACE_TRUNCATED, /* data is the beginning; `full` says how long it was, where that is known */
	TRACE_FAULTED,   /* the memory could not be read from data[len] on */
	TRACE_LATE,      /* an input read when the call had ended: whole, but another thread could have changed it */
	TRACE_RACED,     /* read at entry and at exit, and it differed: data is what was read at entry */
	TRACE_STATUS_COUNT
};

/* When the bytes were the kernel's to read (in) or had been written by it (out). */
enum trace_phase { TRACE_IN, TRACE_OUT };

/* What of an argument a slot holds. */
enum trace_part {
	TRACE_PART_SELF,    /* what the pointer leads to: string, struct, bytes, array, strings each with its NUL */
	TRACE_PART_DATA,    /* of an iovec array (also a msghdr's): the bytes of its buffers one after another */
	TRACE_PART_IOV,     /* of a msghdr: its iovec array */
	TRACE_PART_NAME,    /* of a msghdr: its address */
	TRACE_PART_CONTROL, /* of a msghdr: its control messages */
	TRACE_PART_COUNT
};

/* Slots that belong to no argument register. */
enum { TRACE_ARG_ARGV = 16, TRACE_ARG_ENVP, TRACE_ARG_EXE, TRACE_ARG_CWD };

struct trace_slot {
	uint8_t arg;    /* index of the argument, or TRACE_ARG_* */
	uint8_t status; /* enum trace_status */
	uint8_t phase;  /* enum trace_phase */
	uint8_t part;   /* enum trace_part */
	uint32_t len;   /* bytes at data */
	uint32_t full;  /* bytes before truncation, 0 = not known */
	const uint8_t *data;
};

enum trace_abi { TRACE_X86_64, TRACE_I386, TRACE_ARM64, TRACE_ABI_COUNT };

enum trace_lost_reason { TRACE_LOST_RING, TRACE_LOST_READ, TRACE_LOST_FILE, TRACE_LOST_REASON_COUNT };

/* Of a call that has begun: whether it came back. */
enum trace_left {
	TRACE_LEFT_UNKNOWN, /* there may be another event when it has */
	TRACE_LEFT,         /* not before its thread or the trace ended */
	TRACE_LEFT_AGAIN,   /* the same, of one that was given when it had begun */
};

struct trace_event {
	enum trace_kind kind;
	bool unfinished;  /* of a syscall: it has begun; args are right, ret is not */
	uint8_t left;     /* enum trace_left, of an unfinished one */
	uint8_t abi;      /* enum trace_abi */
	uint16_t cpu;
	uint64_t seq;     /* number of the record on its CPU, from 1; 0 = the source has none */
	uint64_t time;    /* ns of the boot clock, when the call ended (unfinished: began) */
	uint64_t ns;      /* duration, 0 = not known */
	uint32_t pid;     /* of the process (tgid) */
	uint32_t tid;
	uint32_t ppid;    /* 0 = not known */
	const char *comm, *exe, *container; /* null where not known */
	int nr;           /* number of the system call in its abi */
	uint64_t args[6]; /* registers, whole; an int is in the lower half */
	int64_t ret;      /* -1..-4095: errno */
	uint64_t ip, sp;  /* of the user, 0 = not known */
	uint64_t bp;      /* frame pointer, 0 = not known; if it leads out of the stack that is here, only its lower half is right */
	const uint8_t *stack; /* nstack bytes from sp on */
	uint32_t nstack;
	uint32_t nslots;
	const struct trace_slot *slots;
	struct {
		uint64_t count, first, last; /* sequence numbers of cpu; first 0 = place not known */
		uint8_t reason;              /* enum trace_lost_reason */
	} lost;
};

/* Who gets events. False: no more are wanted. */
typedef bool trace_sink_fn(void *ctx, const struct trace_event *ev);

#endif
