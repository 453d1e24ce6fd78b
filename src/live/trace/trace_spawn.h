/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_TRACE_SPAWN_H
#define LIVE_TRACE_TRACE_SPAWN_H

#include "base/err.h"

#include <sys/types.h>

/* A program that is to be traced from its first instruction: a process that waits for a word before it becomes the program. */
struct trace_spawn {
	pid_t pid;       /* 0: nobody */
	int go, failed;  /* pipes, -1: none */
};

struct sock_fprog;

/* The file that a program's name stands for, as a shell finds it: into `path` of `len` bytes. Error not_found. */
_must_use_ struct err *trace_spawn_find(const char *name, char *path, size_t len);

/* Starts the process for argv[0], which is looked for in PATH. `filter`: seccomp's, that it puts on, or null. Error not_found. */
_must_use_ struct err *trace_spawn_new(char *const *argv, const struct sock_fprog *filter, struct trace_spawn *ret);

/* It is traced now: it becomes the program. */
_must_use_ struct err *trace_spawn_go(struct trace_spawn *s);

/* After the process has ended: why it did not become the program; null when it did. */
_must_use_ struct err *trace_spawn_error(const struct trace_spawn *s, const char *name);

void trace_spawn_fini(struct trace_spawn *s);

#endif
