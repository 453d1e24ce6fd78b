/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_MAPS_H
#define LIVE_TRACE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* One mapping of a process that may be executed. */
struct trace_map {
	uint64_t start, end;
	uint64_t file_off; /* of `start` */
	uint64_t ino;      /* 0: no file */
	uint32_t dev;      /* major << 20 | minor */
	char path[4096];   /* as the kernel says it; "" when it has none */
};

/* The executable mapping of a running process at `va`: by PROCMAP_QUERY (Linux 6.11), else by reading /proc/PID/maps. False: there is
 * none, or the process is gone or not for us. */
bool trace_maps_query(uint32_t pid, uint64_t va, struct trace_map *ret);

#endif
