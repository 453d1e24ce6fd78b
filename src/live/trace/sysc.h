/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_SYSC_H
#define LIVE_TRACE_SYSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The system calls of Linux: names, numbers, and of every argument its name, C type and meaning. The rows are facts
 * that tools/mksysc took from the kernel's prototypes (sysc.def); nothing here is ever written. Any thread may call.
 *
 * A source of events fetches memory by `fetch`, `dir`, `size` and `partner` alone; `cls` and `set` say how it is shown.
 */
#define SYSC_ARG_MAX 6

/* What a pointer leads to, that is, what is read of the process's memory. */
enum sysc_fetch {
	SYSC_FETCH_NONE,     /* nothing: a number, or a pointer that is not followed */
	SYSC_FETCH_FIXED,    /* size bytes */
	SYSC_FETCH_STR,      /* a string with its NUL */
	SYSC_FETCH_STRV,     /* a null-terminated array of pointers to strings */
	SYSC_FETCH_BYTES,    /* as many bytes as the partner says */
	SYSC_FETCH_ARRAY,    /* as many elements of size bytes as the partner says */
	SYSC_FETCH_SOCKADDR, /* as BYTES, an address */
	SYSC_FETCH_IOVEC,    /* as many struct iovec as the partner says, and their buffers (TRACE_PART_DATA) */
	SYSC_FETCH_MSGHDR,   /* a struct msghdr and its parts */
	SYSC_FETCH_COUNT
};

enum sysc_dir { SYSC_IN = 1, SYSC_OUT = 2, SYSC_INOUT = 3 };

/* What the value of an argument means. */
enum sysc_cls {
	SYSC_INT,      /* signed, in decimal, of the width of its C type */
	SYSC_UINT,
	SYSC_HEX,
	SYSC_OCT,
	SYSC_PTR,      /* a pointer that is not followed */
	SYSC_FD,
	SYSC_DIRFD,    /* an fd or AT_FDCWD */
	SYSC_PID,
	SYSC_UID,
	SYSC_SIGNAL,
	SYSC_MODE,     /* permissions, with the type of the file */
	SYSC_DEV,
	SYSC_FLAGS,    /* bits named by `set` */
	SYSC_ENUM,     /* one of the values of `set` */
	SYSC_IPCMODE,  /* flags of `set`, and permissions in the lower nine bits */
	SYSC_IOCTL,    /* one of `set`, else direction, type, number and size */
	SYSC_HIDE,     /* not looked at by the kernel, not shown */
	SYSC_PATH,     /* pointers from here on, as far as `fetch` says */
	SYSC_STR,
	SYSC_STRV,
	SYSC_ENVP,     /* strings that are shown as their number */
	SYSC_BUF,
	SYSC_SOCKADDR,
	SYSC_IOVEC,
	SYSC_MSGHDR,
	SYSC_FDSET,    /* descriptors, below the first argument of the call */
	SYSC_STRUCT,   /* ctype names it; an array where there is a partner */
	SYSC_CLS_COUNT
};

/* What the partner of a pointer says of its length. */
enum sysc_len {
	SYSC_LEN_NONE,
	SYSC_LEN_ARG, /* the value of that argument: bytes, or elements of an array */
	SYSC_LEN_PTR, /* that argument points to the 32-bit number, in and (what was there) out */
};

struct sysc_arg {
	const char *name;  /* as in the kernel's prototype */
	const char *ctype; /* "const char *" */
	uint8_t cls;       /* enum sysc_cls */
	uint8_t fetch;     /* enum sysc_fetch */
	uint8_t dir;       /* enum sysc_dir of what a pointer leads to; 0 of a number */
	uint8_t len;       /* enum sysc_len */
	int8_t partner;    /* index of the argument that has the length, or -1 */
	bool by_ret;       /* on the way out the return value bounds it: bytes, or elements of an array */
	uint16_t size;     /* bytes of the struct or element in 64-bit ABIs; 0 where there is none */
	uint16_t set;      /* enum sysc_set_id of flags and enums */
};

/* Groups of -e trace=%GROUP, as strace(1) has them. */
enum sysc_class {
	SYSC_C_FILE = 1 << 0,    /* takes a file name */
	SYSC_C_NETWORK = 1 << 1,
	SYSC_C_MEMORY = 1 << 2,
	SYSC_C_PROCESS = 1 << 3,
	SYSC_C_SIGNAL = 1 << 4,
	SYSC_C_IPC = 1 << 5,
	SYSC_C_DESC = 1 << 6,    /* takes or returns a descriptor */
	SYSC_C_CREDS = 1 << 7,
	SYSC_C_CLOCK = 1 << 8,
	SYSC_C_STAT = 1 << 9,
	SYSC_C_PURE = 1 << 10,   /* cannot fail and has no arguments */
};
#define SYSC_CLASS_COUNT 11

enum sysc_flag {
	SYSC_BLOCKS = 1 << 0,     /* may take long: worth a record at entry */
	SYSC_NO_RETURN = 1 << 1,  /* does not come back where it was called (exit, rt_sigreturn; execve when it works) */
	SYSC_RET_FD = 1 << 2,     /* the result is a descriptor */
	SYSC_RET_PTR = 1 << 3,    /* the result is an address, shown in hex */
	SYSC_RET_PID = 1 << 4,
	SYSC_UNKNOWN = 1 << 5,    /* no source has its prototype: six registers are shown */
};

struct sysc {
	const char *name;
	int16_t nr[3];    /* by enum trace_abi; -1: not there */
	uint8_t nargs;
	uint8_t flags;    /* enum sysc_flag */
	uint16_t classes; /* enum sysc_class */
	struct sysc_arg a[SYSC_ARG_MAX];
};

/* The call with number `nr` of `abi` (enum trace_abi), or null. */
const struct sysc *sysc_find(unsigned abi, int nr);

/* The call with that name, or null. */
const struct sysc *sysc_by_name(const char *name, size_t len);

/* All rows, by name. */
const struct sysc *sysc_all(size_t *ret_cnt);

/* The call as these registers make it: of fcntl(2) and its like, what the arguments are depends on one of them.
 * `*ret` is the caller's, a changed copy of `s`. */
void sysc_resolve(const struct sysc *s, const uint64_t args[SYSC_ARG_MAX], struct sysc *ret);

/* The `idx`th of the ways in which arguments of `s` depend on another one, as sysc_resolve() gives it; false: there are no more. */
bool sysc_variant(const struct sysc *s, size_t idx, struct sysc *ret);

/* Whether the call makes the process another program: when it returns its registers, number and abi among them, are the new one's, and the kernel
 * calls it execve, of the new abi. */
bool sysc_is_exec(unsigned abi, int nr);

/* Whether the C type fills the register; of others the upper half means nothing. */
bool sysc_is_wide(const struct sysc_arg *a);

/* One more than the highest number of `abi`. */
int sysc_end(unsigned abi);

/* The bit of a group by its name ("file", "%file"), 0 where there is none; and back, null past the last. */
uint16_t sysc_class_bit(const char *name, size_t len);
const char *sysc_class_name(unsigned idx);

/* The sets of names, SYSC_SET_open and so on; 0 is no set. */
enum sysc_set_id {
	SYSC_SET_NONE,
#define SET(set_name, mask, ...) SYSC_SET_##set_name,
#include "live/trace/sysc_sets.def"
#undef SET
	SYSC_SET_COUNT
};

/* Names for the bits of flags, or the values of an enum. */
struct sysc_name {
	const char *name;
	uint64_t value;
};

struct sysc_set {
	const char *name;
	uint64_t mask; /* of flags: bits that together are one number (O_ACCMODE), or 0 */
	uint16_t cnt;
	const struct sysc_name *names; /* in the order they are shown: of flags, those of several bits before their parts */
};

/* The set with that id; null where there is none. `abi` counts where architectures disagree (O_DIRECTORY). */
const struct sysc_set *sysc_set(unsigned abi, unsigned set);

/* The name of a value of an enum, or null. */
const char *sysc_set_name(unsigned abi, unsigned set, uint64_t value);

#endif
