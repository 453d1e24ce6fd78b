/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

/*
 * Scope cleanup. A variable marked with one of these is released when it goes out of scope;
 * ownership leaves the scope through take_ptr() or take_fd().
 */
#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _must_use_ __attribute__((warn_unused_result))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))

static inline void cleanup_freep(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _cleanup_free_ _cleanup_(cleanup_freep)
#define _cleanup_close_ _cleanup_(cleanup_closep)

/* Gives the pointer away: the variable becomes null, its value is the result. */
#define take_ptr(p)                  \
	({                           \
		__auto_type t_ = (p); \
		(p) = NULL;          \
		t_;                  \
	})

/* Gives the descriptor away: the variable becomes -1, its value is the result. */
#define take_fd(fd)         \
	({                  \
		int t_ = (fd); \
		(fd) = -1;  \
		t_;         \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
