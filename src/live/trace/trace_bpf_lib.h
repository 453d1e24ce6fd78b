/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_BPF_LIB_H
#define LIVE_TRACE_BPF_LIB_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What of libbpf is called, loaded when tracing is first asked for. Names and meanings are libbpf's own
 * (<bpf/libbpf.h>, 1.0 and newer); its types are not named, so that this compiles where its headers are not.
 */
struct bpf_object;
struct bpf_map;
struct bpf_program;
struct bpf_link;

struct trace_bpf_lib {
	struct bpf_object *(*object_open_mem)(const void *bytes, size_t len, const void *opts);
	int (*object_load)(struct bpf_object *o);
	void (*object_close)(struct bpf_object *o);
	struct bpf_program *(*object_find_program_by_name)(const struct bpf_object *o, const char *name);
	struct bpf_map *(*object_find_map_by_name)(const struct bpf_object *o, const char *name);
	struct bpf_map *(*object_next_map)(const struct bpf_object *o, const struct bpf_map *m);
	const char *(*map_name)(const struct bpf_map *m);
	int (*map_fd)(const struct bpf_map *m);
	int (*map_set_max_entries)(struct bpf_map *m, uint32_t n);
	int (*map_set_value_size)(struct bpf_map *m, uint32_t len);
	void *(*map_initial_value)(struct bpf_map *m, size_t *ret_len);
	int (*map_update_elem)(int fd, const void *key, const void *value, uint64_t flags);
	int (*program_fd)(const struct bpf_program *p);
	int (*program_set_autoload)(struct bpf_program *p, bool yes);
	struct bpf_link *(*program_attach)(const struct bpf_program *p);
	int (*link_destroy)(struct bpf_link *l);
};

/* The library, loaded at the first call. ERR_ENV: it is not here, or this scry has no programs for it. */
_must_use_ struct err *trace_bpf_lib(const struct trace_bpf_lib **ret);

/* The programs as an object file, by enum trace_hook (not TRACE_HOOK_ANY). Null when built without. */
const void *trace_bpf_object(int hook, size_t *ret_len);

#endif
