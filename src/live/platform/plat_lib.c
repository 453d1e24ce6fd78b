/* SPDX-License-Identifier: Apache-2.0 */
#include "live/platform/plat_lib.h"

#include "base/cleanup.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define LIBRARIES_MAX 8192
#define FILE_MAX ((size_t)64 << 20) /* of what is read of /proc, bytes */
#define DYNAMIC_MAX 4096            /* entries */

static void read_whole(pid_t pid, const char *what, struct buf *out)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	for (ssize_t n = 1; fd >= 0 && n > 0 && out->len < FILE_MAX;) {
		char *to = buf_room(out, 65536);
		n = to ? read(fd, to, 65536) : 0;
		out->len += n > 0 ? (size_t)n : 0;
	}
}

/* --- mappings ------------------------------------------------------------------------------------------------------- */

struct mapping {
	uint64_t start, end;
	char perms[5];
	const char *name; /* borrowed, up to the line's end */
	size_t name_len;
};

/* The line at `*at`, which moves on. */
static bool next_mapping(const struct buf *maps, size_t *at, struct mapping *ret)
{
	while (*at < maps->len) {
		const char *line = maps->data + *at, *end = memchr(line, '\n', maps->len - *at);
		size_t len = end ? (size_t)(end - line) : maps->len - *at;
		char head[128];
		unsigned long long start, stop;
		int name_at = 0;
		*at += len + 1;
		snprintf(head, sizeof(head), "%.*s", (int)MIN(len, sizeof(head) - 1), line);
		if (sscanf(head, "%llx-%llx %4s %*s %*s %*s %n", &start, &stop, ret->perms, &name_at) != 3)
			continue;
		ret->start = start;
		ret->end = stop;
		ret->name = line + MIN((size_t)name_at, len);
		ret->name_len = name_at ? len - MIN((size_t)name_at, len) : 0;
		return true;
	}
	return false;
}

void plat_lib_read_maps(struct plat_inf *inf, struct buf *out)
{
	read_whole(inf->pid, "maps", out);
}

void plat_lib_put_region(const struct buf *maps, uint64_t va, struct buf *out)
{
	struct mapping m;
	uint64_t hole = 0;
	for (size_t at = 0; next_mapping(maps, &at, &m) && m.start <= va;) {
		hole = m.end;
		if (va >= m.end)
			continue;
		buf_printf(out, "start:%llx;size:%llx;permissions:", (unsigned long long)m.start, (unsigned long long)(m.end - m.start));
		for (unsigned i = 0; i < 3; i++)
			if (m.perms[i] != '-')
				buf_add_ch(out, m.perms[i]);
		buf_add_str(out, ";flags:;");
		if (m.name_len) {
			buf_add_str(out, "name:");
			buf_add_hexbytes(out, (const uint8_t *)m.name, m.name_len);
			buf_add_ch(out, ';');
		}
		return;
	}
	uint64_t next = 0;
	for (size_t at = 0; next_mapping(maps, &at, &m);)
		if (m.start > va) {
			next = m.start;
			break;
		}
	buf_printf(out, "start:%llx;size:%llx;", (unsigned long long)hole, (unsigned long long)((next ? next : UINT64_MAX) - hole));
}

bool plat_lib_load_address(struct plat_inf *inf, const char *path, uint64_t *ret_va)
{
	struct buf maps = {0};
	struct mapping m;
	bool is_there = false;
	plat_lib_read_maps(inf, &maps);
	for (size_t at = 0; !is_there && next_mapping(&maps, &at, &m);)
		is_there = m.name_len == strlen(path) && !memcmp(m.name, path, m.name_len);
	buf_fini(&maps);
	if (is_there)
		*ret_va = m.start;
	return is_there;
}

/* --- libraries ------------------------------------------------------------------------------------------------------ */

void plat_lib_read_auxv(struct plat_inf *inf, struct buf *out)
{
	read_whole(inf->pid, "auxv", out);
}

static uint64_t aux_value(const struct buf *auxv, uint64_t type)
{
	for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= auxv->len; at += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t a;
		memcpy(&a, auxv->data + at, sizeof(a));
		if (a.a_type == type)
			return a.a_un.a_val;
	}
	return 0;
}

static uint64_t read_word(struct plat_inf *inf, uint64_t va)
{
	uint64_t v = 0;
	return plat_mem_read(inf, va, &v, sizeof(v)) == sizeof(v) ? v : 0;
}

/* DT_DEBUG of the program, where the loader puts its r_debug; 0 before it did, or in a program without one. */
static uint64_t find_r_debug(struct plat_inf *inf)
{
	struct buf auxv = {0};
	uint64_t phdrs_va, cnt, dynamic = 0, bias = 0;
	plat_lib_read_auxv(inf, &auxv);
	phdrs_va = aux_value(&auxv, AT_PHDR);
	cnt = MIN(aux_value(&auxv, AT_PHNUM), (uint64_t)1024);
	buf_fini(&auxv);
	for (uint64_t i = 0; i < cnt; i++) {
		Elf64_Phdr p;
		if (plat_mem_read(inf, phdrs_va + i * sizeof(p), &p, sizeof(p)) != sizeof(p))
			return 0;
		if (p.p_type == PT_PHDR)
			bias = phdrs_va - p.p_vaddr;
		else if (p.p_type == PT_DYNAMIC)
			dynamic = p.p_vaddr;
	}
	for (uint64_t i = 0; dynamic && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn d;
		if (plat_mem_read(inf, bias + dynamic + i * sizeof(d), &d, sizeof(d)) != sizeof(d) || d.d_tag == DT_NULL)
			return 0;
		if (d.d_tag == DT_DEBUG)
			return d.d_un.d_ptr;
	}
	return 0;
}

static void put_xml(struct buf *out, const char *s)
{
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;
		if (ch < ' ')
			buf_printf(out, "&#xfffd;");
		else if (strchr("<>&\"'", ch))
			buf_printf(out, "&#%u;", ch);
		else
			buf_add_ch(out, (char)ch);
	}
}

/* struct link_map as <link.h> has it: l_addr, l_name, l_ld, l_next, l_prev. */
struct link {
	uint64_t addr, name, ld, next, prev;
};

void plat_lib_put_libraries(struct plat_inf *inf, bool has_main, struct buf *out)
{
	/* r_debug: r_version, r_map, r_brk, r_state, r_ldbase. */
	uint64_t r_debug = find_r_debug(inf), first = r_debug ? read_word(inf, r_debug + 8) : 0;
	buf_add_str(out, "<library-list-svr4 version=\"1.0\"");
	if (first && has_main)
		buf_printf(out, " main-lm=\"0x%llx\"", (unsigned long long)first);
	buf_add_ch(out, '>');
	uint64_t at = first;
	for (unsigned i = 0; at && i < LIBRARIES_MAX; i++) {
		struct link l;
		char name[PATH_MAX];
		if (plat_mem_read(inf, at, &l, sizeof(l)) != sizeof(l))
			break;
		size_t len = plat_mem_read(inf, l.name, name, sizeof(name) - 1);
		name[len] = 0;
		if (*name) {
			buf_add_str(out, "<library name=\"");
			put_xml(out, name);
			buf_printf(out, "\" lm=\"0x%llx\" l_addr=\"0x%llx\" l_ld=\"0x%llx\" lmid=\"0x0\"/>", (unsigned long long)at,
				   (unsigned long long)l.addr, (unsigned long long)l.ld);
		}
		at = l.next;
	}
	buf_add_str(out, "</library-list-svr4>");
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

void plat_lib_put_exe(struct plat_inf *inf, struct buf *out)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/%d/exe", inf->pid);
	ssize_t n = readlink(link, path, sizeof(path));
	if (n > 0)
		buf_add(out, path, (size_t)n);
}

void plat_lib_thread_name(struct plat_inf *inf, pid_t tid, char ret[64])
{
	struct buf name = {0};
	char what[48];
	snprintf(what, sizeof(what), "task/%d/comm", tid);
	read_whole(inf->pid, what, &name);
	snprintf(ret, 64, "%.*s", (int)MIN(name.len ? name.len - 1 : 0, (size_t)63), name.data ? name.data : "");
	buf_fini(&name);
}

void plat_lib_put_threads(struct plat_inf *inf, bool has_multiprocess, struct buf *out)
{
	buf_add_str(out, "<?xml version=\"1.0\"?><threads>");
	for (size_t i = 0; i < inf->threads.cnt; i++) {
		pid_t tid = inf->threads.data[i]->tid;
		char name[64];
		plat_lib_thread_name(inf, tid, name);
		buf_add_str(out, "<thread id=\"");
		if (has_multiprocess)
			buf_printf(out, "p%x.", inf->pid);
		buf_printf(out, "%x\" name=\"", tid);
		put_xml(out, name);
		buf_add_str(out, "\"/>");
	}
	buf_add_str(out, "</threads>");
}

void plat_lib_read_siginfo(struct plat_thread *t, struct buf *out)
{
	siginfo_t info;
	if (t && t->is_stopped && ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0)
		buf_add(out, &info, sizeof(info));
}

void plat_lib_put_process(struct plat_inf *inf, struct buf *out)
{
	struct buf status = {0};
	read_whole(inf->pid, "status", &status);
	buf_add_ch(&status, 0);
	unsigned ppid = 0, uid = 0, euid = 0, gid = 0, egid = 0;
	const char *p = status.failed ? NULL : strstr(status.data, "\nPPid:");
	if (p)
		(void)sscanf(p, " PPid: %u", &ppid);
	p = p ? strstr(p, "\nUid:") : NULL;
	if (p)
		(void)sscanf(p, " Uid: %u %u", &uid, &euid);
	p = p ? strstr(p, "\nGid:") : NULL;
	if (p)
		(void)sscanf(p, " Gid: %u %u", &gid, &egid);
	buf_fini(&status);
	buf_printf(out, "pid:%x;parent-pid:%x;real-uid:%x;real-gid:%x;effective-uid:%x;effective-gid:%x;triple:", inf->pid, ppid, uid, gid, euid,
		   egid);
	static const char triple[] = "x86_64-unknown-linux-gnu";
	buf_add_hexbytes(out, (const uint8_t *)triple, sizeof(triple) - 1);
	buf_add_str(out, ";ostype:linux;endian:little;ptrsize:8;");
}
