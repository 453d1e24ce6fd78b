/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_bpf_lib.h"

#include "live/trace/trace_bpf.h"

#include "base/dl.h"

#include <pthread.h>
#include <stdarg.h>

#ifdef SCRY_HAS_BPF
extern const uint8_t trace_bpf_btf[], trace_bpf_btf_end[], trace_bpf_raw[], trace_bpf_raw_end[], trace_bpf_perf[], trace_bpf_perf_end[];

const void *trace_bpf_object(int hook, size_t *ret_len)
{
	const struct { const uint8_t *begin, *end; } objects[] = {
		[TRACE_HOOK_BTF] = {trace_bpf_btf, trace_bpf_btf_end},
		[TRACE_HOOK_RAW] = {trace_bpf_raw, trace_bpf_raw_end},
		[TRACE_HOOK_PERF] = {trace_bpf_perf, trace_bpf_perf_end},
	};
	*ret_len = (size_t)(objects[hook].end - objects[hook].begin);
	return objects[hook].begin;
}

static struct trace_bpf_lib lib;
static pthread_mutex_t lib_lock = PTHREAD_MUTEX_INITIALIZER;
static bool lib_is_loaded;
static void *(*lib_set_print)(int (*print)(int level, const char *fmt, va_list args));

/* What went wrong is said by our own errors. */
static int print_nothing(int level, const char *fmt, va_list args)
{
	return 0;
}

struct err *trace_bpf_lib(const struct trace_bpf_lib **ret)
{
	static const struct dl_sym syms[] = {
		{"bpf_object__open_mem", (void **)&lib.object_open_mem},
		{"bpf_object__load", (void **)&lib.object_load},
		{"bpf_object__close", (void **)&lib.object_close},
		{"bpf_object__find_program_by_name", (void **)&lib.object_find_program_by_name},
		{"bpf_object__find_map_by_name", (void **)&lib.object_find_map_by_name},
		{"bpf_object__next_map", (void **)&lib.object_next_map},
		{"bpf_map__name", (void **)&lib.map_name},
		{"bpf_map__fd", (void **)&lib.map_fd},
		{"bpf_map__set_max_entries", (void **)&lib.map_set_max_entries},
		{"bpf_map__set_value_size", (void **)&lib.map_set_value_size},
		{"bpf_map__initial_value", (void **)&lib.map_initial_value},
		{"bpf_map_update_elem", (void **)&lib.map_update_elem},
		{"bpf_program__fd", (void **)&lib.program_fd},
		{"bpf_program__set_autoload", (void **)&lib.program_set_autoload},
		{"bpf_program__attach", (void **)&lib.program_attach},
		{"bpf_link__destroy", (void **)&lib.link_destroy},
		{"libbpf_set_print", (void **)&lib_set_print},
	};
	pthread_mutex_lock(&lib_lock);
	struct err *e = lib_is_loaded ? NULL : dl_load("libbpf.so.1", "tracing with eBPF", "libbpf1", syms, ARRAY_LEN(syms));
	if (!e && !lib_is_loaded)
		lib_set_print(print_nothing);
	lib_is_loaded = lib_is_loaded || !e;
	pthread_mutex_unlock(&lib_lock);
	*ret = &lib;
	return e;
}
#else
const void *trace_bpf_object(int hook, size_t *ret_len)
{
	*ret_len = 0;
	return NULL;
}

struct err *trace_bpf_lib(const struct trace_bpf_lib **ret)
{
	struct err *e = err_new(ERR_ENV, "this scry was built without eBPF");
	return err_fix(e, "install the packages clang and libbpf-dev and build scry again");
}
#endif
