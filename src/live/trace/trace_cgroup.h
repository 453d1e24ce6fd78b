/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_CGROUP_H
#define LIVE_TRACE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cgroups and the containers they are named after (cgroups(7)), in hierarchies of both versions. */

/* The id of the container in the path of a cgroup: the last run of 64 hexadecimal digits; its length is 64 or 0. */
size_t trace_cgroup_container(const char *cgroup_path, const char **ret);

/* Whether that id begins like this; false where the path has none. */
bool trace_cgroup_is_in(const char *cgroup_path, const char *container);

/* Calls `fn` with trace_cgroup_key() of each cgroup there is whose path names that container. Hierarchies that are not mounted here are
 * left out, and folders more than 32 below their root. */
void trace_cgroup_each(const char *container, void (*fn)(void *ctx, uint64_t key), void *ctx);

#endif
