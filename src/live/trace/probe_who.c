/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/probe_who.h"

#include "live/trace/probe_int.h"
#include "live/trace/trace_btf.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PID_NS 0xeffffffcu /* PROC_PID_INIT_INO of include/linux/proc_ns.h */
enum { BITS_LEN = PROBE_WHO_MAX / 8, ROUND_MAX = 64 /* looks at all processes */ };

struct probe_who {
	int map_fd, prog_fd, link_fd;
	uint64_t *bits;
};

static void set_bit(struct probe_who *w, uint32_t pid)
{
	if (pid < PROBE_WHO_MAX)
		__atomic_fetch_or(&w->bits[pid / 64], (uint64_t)1 << pid % 64, __ATOMIC_SEQ_CST);
}

static bool has_bit(const struct probe_who *w, uint32_t pid)
{
	return pid < PROBE_WHO_MAX && __atomic_load_n(&w->bits[pid / 64], __ATOMIC_RELAXED) >> pid % 64 & 1;
}

/* The program: its arguments are the process that makes another and the one that is made, struct task_struct each. */
static void fork_program(struct probe_asm *a, int map_fd, uint32_t tgid_off)
{
	enum { R0, R1, R2, R3, R4, R5, PARENT, CHILD, BASE, BIT, FP, AT_TGID = -8 };
	uint32_t out = probe_asm_label(a), foreign = probe_asm_label(a);
	probe_load(a, BPF_DW, R3, R1, 8);
	probe_alu_imm(a, BPF_ADD, R3, (int32_t)tgid_off);
	probe_mov(a, R1, FP);
	probe_alu_imm(a, BPF_ADD, R1, AT_TGID);
	probe_store_imm(a, BPF_DW, FP, AT_TGID, 0);
	probe_mov_imm(a, R2, 4);
	probe_helper(a, BPF_FUNC_probe_read_kernel);
	probe_jump_if_imm(a, BPF_JNE, R0, 0, out);
	probe_load(a, BPF_W, CHILD, FP, AT_TGID);
	probe_helper(a, BPF_FUNC_get_current_pid_tgid);
	probe_mov(a, PARENT, R0);
	probe_alu_imm(a, BPF_RSH, PARENT, 32);
	probe_jump_if(a, BPF_JEQ, PARENT, CHILD, out); /* a thread */
	probe_alu_imm(a, BPF_AND, PARENT, PROBE_WHO_MAX - 1);
	probe_alu_imm(a, BPF_AND, CHILD, PROBE_WHO_MAX - 1);
	probe_imm64(a, BASE, BPF_PSEUDO_MAP_VALUE, (uint32_t)map_fd);
	/* r1 = the parent's bit. */
	probe_mov(a, R2, PARENT);
	probe_alu_imm(a, BPF_RSH, R2, 6);
	probe_alu_imm(a, BPF_LSH, R2, 3);
	probe_mov(a, R3, BASE);
	probe_alu(a, BPF_ADD, R3, R2);
	probe_load(a, BPF_DW, R1, R3, 0);
	probe_alu_imm(a, BPF_AND, PARENT, 63);
	probe_alu(a, BPF_RSH, R1, PARENT);
	probe_alu_imm(a, BPF_AND, R1, 1);
	/* r3 = the child's word, r9 = its bit. */
	probe_mov(a, R2, CHILD);
	probe_alu_imm(a, BPF_RSH, R2, 6);
	probe_alu_imm(a, BPF_LSH, R2, 3);
	probe_mov(a, R3, BASE);
	probe_alu(a, BPF_ADD, R3, R2);
	probe_alu_imm(a, BPF_AND, CHILD, 63);
	probe_mov_imm(a, BIT, 1);
	probe_alu(a, BPF_LSH, BIT, CHILD);
	probe_jump_if_imm(a, BPF_JEQ, R1, 0, foreign);
	probe_atomic(a, BPF_OR, R3, 0, BIT);
	probe_jump(a, out);
	probe_asm_bind(a, foreign);
	probe_alu_imm(a, BPF_XOR, BIT, -1);
	probe_atomic(a, BPF_AND, R3, 0, BIT);
	probe_asm_bind(a, out);
	probe_mov_imm(a, R0, 0);
	probe_exit(a);
	probe_asm_finish(a);
}

static struct err *attach_forks(struct probe_who *w)
{
	struct trace_btf *btf = NULL;
	uint32_t off = 0;
	struct err *e = trace_btf_open_kernel(&btf);
	if (!e && !trace_btf_member(btf, "task_struct", "tgid", &off))
		e = err_new(ERR_ENV, "the kernel's type information does not say where a process has its number");
	trace_btf_free(btf);
	if (e)
		return e;
	struct probe_asm a = {0};
	fork_program(&a, w->map_fd, off);
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT};
	attr.insns = (uintptr_t)a.code.data;
	attr.insn_cnt = (uint32_t)a.code.cnt;
	attr.license = (uintptr_t)"GPL";
	memcpy(attr.prog_name, "scry_fork", 10);
	w->prog_fd = a.failed ? -1 : probe_bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
	int why = a.failed ? ENOMEM : errno;
	probe_asm_fini(&a);
	if (w->prog_fd < 0)
		return probe_refused(why, "children cannot be followed");
	union bpf_attr tp = {0};
	tp.raw_tracepoint.name = (uintptr_t)"sched_process_fork";
	tp.raw_tracepoint.prog_fd = (uint32_t)w->prog_fd;
	w->link_fd = probe_bpf(BPF_RAW_TRACEPOINT_OPEN, &tp, sizeof(tp));
	return w->link_fd < 0 ? probe_refused(errno, "children cannot be followed") : NULL;
}

static bool read_parent(const char *pid, uint32_t *ret)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	/* The name may have anything in it, brackets too. */
	const char *end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %u", ret) == 1;
}

/* The children there are; true when new ones were found. Those made meanwhile by one that was known have their bit by the program. */
static bool find_children(struct probe_who *w)
{
	DIR *d = opendir("/proc");
	bool found = false;
	for (const struct dirent *x; d && (x = readdir(d));) {
		char *end;
		unsigned long pid = strtoul(x->d_name, &end, 10);
		uint32_t parent;
		if (*end || !pid || has_bit(w, (uint32_t)pid) || !read_parent(x->d_name, &parent) || !has_bit(w, parent))
			continue;
		set_bit(w, (uint32_t)pid);
		found = true;
	}
	if (d)
		closedir(d);
	return found;
}

static struct err *open_bits(struct probe_who *w)
{
	struct stat st;
	if (stat("/proc/self/ns/pid", &st) || st.st_ino != FIRST_PID_NS)
		return err_fix(err_new(ERR_ENV, "process numbers of this pid namespace are not the kernel's"),
			       "probe one process by -p without --tree, or run scry outside of the container");
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = BITS_LEN, .max_entries = 1, .map_flags = BPF_F_MMAPABLE};
	memcpy(attr.map_name, "scry_who", 9);
	w->map_fd = probe_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
	if (w->map_fd < 0)
		return probe_refused(errno, "no memory shared with the kernel");
	void *p = mmap(NULL, BITS_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, w->map_fd, 0);
	if (p == MAP_FAILED)
		return probe_refused(errno, "memory shared with the kernel cannot be mapped");
	w->bits = p;
	return NULL;
}

struct err *probe_who_open(const pid_t *pids, size_t cnt, bool with_children, struct probe_who **ret)
{
	struct probe_who *w = calloc(1, sizeof(*w));
	if (!w)
		return &err_nomem;
	w->map_fd = w->prog_fd = w->link_fd = -1;
	struct err *e = open_bits(w);
	if (!e && with_children)
		e = attach_forks(w);
	for (size_t i = 0; !e && i < cnt; i++) {
		set_bit(w, (uint32_t)pids[i]);
		if (kill(pids[i], 0) && errno == ESRCH)
			e = err_new(ERR_NOT_FOUND, "%d: there is no such process", (int)pids[i]);
	}
	for (unsigned i = 0; !e && with_children && i < ROUND_MAX && find_children(w); i++)
		;
	if (e)
		probe_who_close(w);
	else
		*ret = w;
	return e;
}

void probe_who_close(struct probe_who *w)
{
	if (!w)
		return;
	cleanup_closep(&w->link_fd);
	cleanup_closep(&w->prog_fd);
	if (w->bits)
		munmap(w->bits, BITS_LEN);
	cleanup_closep(&w->map_fd);
	free(w);
}

int probe_who_fd(const struct probe_who *w)
{
	return w->map_fd;
}

bool probe_who_is_alive(const struct probe_who *w)
{
	for (uint32_t i = 0; i < PROBE_WHO_MAX / 64; i++) {
		for (uint64_t word = __atomic_load_n(&w->bits[i], __ATOMIC_RELAXED); word; word &= word - 1) {
			uint32_t pid = i * 64 + (uint32_t)__builtin_ctzll(word);
			if (!kill((pid_t)pid, 0) || errno != ESRCH)
				return true;
		}
	}
	return false;
}
