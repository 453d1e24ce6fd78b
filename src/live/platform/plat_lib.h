/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_LIB_H
#define LIVE_PLATFORM_PLAT_LIB_H

#include "live/platform/plat_inf.h"

/* What a process has besides threads, registers and bytes: mappings, libraries, names. All of it comes from a program that may lie: lists end,
 * texts are cut and escaped. */

/* /proc/PID/maps. */
void plat_lib_read_maps(struct plat_inf *inf, struct buf *out);
/* The answer of qMemoryRegionInfo from it: the mapping at `va`, or the hole. */
void plat_lib_put_region(const struct buf *maps, uint64_t va, struct buf *out);
/* Where a file is mapped first; false when it is not. */
bool plat_lib_load_address(struct plat_inf *inf, const char *path, uint64_t *ret_va);

void plat_lib_read_auxv(struct plat_inf *inf, struct buf *out);
/* The loader's list as XML, libraries-svr4 ("Debugging with GDB", E.15). `has_main`: with main-lm, which LLDB takes for where it finds the
 * loader's r_debug. */
void plat_lib_put_libraries(struct plat_inf *inf, bool has_main, struct buf *out);
/* The program's path. */
void plat_lib_put_exe(struct plat_inf *inf, struct buf *out);
void plat_lib_put_threads(struct plat_inf *inf, bool has_multiprocess, struct buf *out);
/* siginfo_t of the thread's stop; nothing when it has none. */
void plat_lib_read_siginfo(struct plat_thread *t, struct buf *out);
/* The answer of qProcessInfo. */
void plat_lib_put_process(struct plat_inf *inf, struct buf *out);
void plat_lib_thread_name(struct plat_inf *inf, pid_t tid, char ret[64]);

#endif
