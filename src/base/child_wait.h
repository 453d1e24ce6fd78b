/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHILD_WAIT_H
#define BASE_CHILD_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Whether a process of the group sleeps in opening or reading a named pipe or a device, which is then put into `ret`, cut to `cap`
 * bytes. Where /proc does not say, none does. Costs a look at every process there is.
 */
bool child_waits_for(pid_t group, char *ret, size_t cap);

#endif
