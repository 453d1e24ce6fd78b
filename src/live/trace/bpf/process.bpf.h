/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_BPF_PROCESS_BPF_H
#define LIVE_TRACE_BPF_PROCESS_BPF_H

#ifdef __bpf__ /* clang's target; for nobody else */

#include "live/trace/bpf/record.bpf.h"

/*
 * Life of processes: fork, exec, exit, names, signals, mappings that may be executed. These are rare beside system
 * calls, so they read whatever they need one by one. Here, too, is decided who is recorded: when a process is made, becomes
 * another program, takes another name, user or namespace, or is moved to another cgroup.
 */
#define PATH_PARTS 32 /* components of a path, mount points among them */
#define NAME_LEN 256
#define AUXV_LEN (40 * 8)
#define CONTROLLERS 16 /* of cgroups, each of which may have a hierarchy of its own */

/* The end of the record so far is r->s->off, in bytes from its frame. Where the next slot's bytes go: */
static __always_inline void *next_slot(struct rec *r)
{
	uint64_t off = r->s->off;
	BOUND(off, BUF_LEN);
	return r->p + off + sizeof(struct trace_wire_slot);
}

/* Ends that slot, of which the caller has written `len` bytes of `full`. */
static __always_inline void put_slot(struct rec *r, uint32_t arg, uint32_t how, uint64_t len, uint64_t full)
{
	uint64_t off = r->s->off;
	BOUND(off, BUF_LEN);
	struct trace_wire_slot *slot = (struct trace_wire_slot *)(r->p + off);
	slot->len = (uint16_t)len;
	slot->arg = (uint8_t)arg;
	slot->how = (uint8_t)how;
	slot->full = (uint32_t)full;
	r->s->off = (off + sizeof(*slot) + len + 7) & ~7ull;
}

/*
 * A file's path as its components, last one first: what is mounted where is followed up to the root of who traces, who may be in a chroot and
 * looks for the file by this name, or else to that of all.
 */
static __always_inline void put_path(struct rec *r, uint32_t arg, struct vfsmount *mnt, struct dentry *dentry)
{
	uint32_t status = TRACE_TRUNCATED;
	uint64_t mnt_off = __builtin_preserve_field_info(((struct mount *)0)->mnt, 0);
	r->s->size = 0;

	for (int i = 0; i < PATH_PARTS; i++) {
		if ((uint64_t)dentry == shared.root_dentry && (uint64_t)mnt == shared.root_mnt) {
			status = TRACE_OK;
			break;
		}
		if (dentry == READ(mnt, mnt_root)) {
			struct mount *m = (struct mount *)((uint8_t *)mnt - mnt_off), *up = READ(m, mnt_parent);
			if (m == up) {
				status = TRACE_OK;
				break;
			}
			dentry = READ(m, mnt_mountpoint);
			mnt = (struct vfsmount *)((uint8_t *)up + mnt_off);
			continue;
		}
		struct dentry *parent = READ(dentry, d_parent);
		uint64_t off = r->s->off, len = r->s->size;
		BOUND(off, BUF_LEN);
		BOUND(len, TRACE_LIMIT_MAX - NAME_LEN);
		int64_t n = bpf_probe_read_kernel_str(r->p + off + sizeof(struct trace_wire_slot) + len, NAME_LEN, READ(dentry, d_name.name));
		if (n <= 0)
			break;
		r->s->size = len + n;
		if (parent == dentry) { /* in no folder: a memfd, a pipe */
			status = TRACE_OK;
			break;
		}
		dentry = parent;
	}
	put_slot(r, arg, status | TRACE_WIRE_REVERSED, r->s->size, 0);
}

static __always_inline void put_file(struct rec *r, uint32_t arg, struct file *file)
{
	struct inode *inode = READ(file, f_inode);
	struct super_block *sb = READ(inode, i_sb);
	struct trace_wire_file *f = next_slot(r);
	f->ino = READ(inode, i_ino);
	f->dev = READ(sb, s_dev);
	f->nlink = READ(inode, i_nlink);
	put_slot(r, TRACE_WIRE_ARG_FILE, TRACE_OK, sizeof(*f), sizeof(*f));
	put_path(r, arg, READ(file, f_path.mnt), READ(file, f_path.dentry));
}

static __always_inline uint64_t cgroup_of(struct task_struct *task)
{
	struct css_set *set = READ(task, cgroups);
	struct cgroup *group = READ(set, dfl_cgrp);
	struct kernfs_node *kn = READ(group, kn);
	return READ(kn, id);
}

static __always_inline uint32_t mnt_ns_of(struct task_struct *task)
{
	struct nsproxy *ns = READ(task, nsproxy);
	struct mnt_namespace *mnt = READ(ns, mnt_ns);
	return READ(mnt, ns.inum);
}

static __always_inline uint32_t pid_ns_of(struct task_struct *task)
{
	struct nsproxy *ns = READ(task, nsproxy);
	struct pid_namespace *pid = READ(ns, pid_ns_for_children);
	return READ(pid, ns.inum);
}

static __always_inline void put_proc(struct rec *r, struct task_struct *task, const void *comm)
{
	struct trace_wire_proc *p = next_slot(r);
	struct task_struct *parent = READ(task, real_parent);
	struct cred *cred = READ(task, cred);
	p->start = READ(task, start_boottime);
	p->cgroup = cgroup_of(task);
	p->tgid = READ(task, tgid);
	p->ppid = READ(parent, tgid);
	p->uid = READ(cred, uid.val);
	p->gid = READ(cred, gid.val);
	p->pid_ns = pid_ns_of(task);
	p->mnt_ns = mnt_ns_of(task);
	__builtin_memset(p->comm, 0, sizeof(p->comm));
	bpf_probe_read_kernel_str(p->comm, sizeof(p->comm), comm);
	put_slot(r, TRACE_WIRE_ARG_PROC, TRACE_OK, sizeof(*p), sizeof(*p));
}

#define COMM(task) __builtin_preserve_access_index(&(task)->comm)

/* The `full` bytes at `from` of the process's memory, as far as they are taken. */
static __always_inline void put_memory(struct rec *r, uint32_t arg, uint64_t from, uint64_t full)
{
	uint64_t len = full;
	uint32_t status = full > TRACE_LIMIT_MAX ? TRACE_TRUNCATED : TRACE_OK;
	BOUND(len, TRACE_LIMIT_MAX);
	if (bpf_probe_read_user(next_slot(r), (uint32_t)len, (void *)from)) {
		len = 0;
		status = TRACE_FAULTED;
	}
	put_slot(r, arg, status, len, full);
}

static __always_inline bool has(const volatile struct trace_match_ids *m, uint64_t v)
{
	for (uint32_t i = 0; i < TRACE_MATCH_MAX; i++) {
		if (i < m->cnt && m->ids[i] == v)
			return true;
	}
	return false;
}

static __always_inline bool has_comm(const void *name)
{
	char comm[16];
	bpf_probe_read_kernel(comm, sizeof(comm), name);
	for (uint32_t i = 0; i < TRACE_MATCH_MAX; i++) {
		bool same = i < cfg.comm_cnt;
		for (uint32_t j = 0; same && j < 16; j++) {
			same = comm[j] == cfg.comm[i][j];
			if (!comm[j])
				break;
		}
		if (same)
			return true;
	}
	return false;
}

static __always_inline bool has_exe(struct task_struct *task)
{
	struct mm_struct *mm = READ(task, mm);
	struct file *exe = READ(mm, exe_file);
	struct inode *inode = READ(exe, f_inode);
	struct super_block *sb = READ(inode, i_sb);
	uint64_t ino = READ(inode, i_ino);
	uint32_t dev = READ(sb, s_dev);
	for (uint32_t i = 0; i < TRACE_MATCH_MAX; i++) {
		if (i < cfg.exe.cnt && cfg.exe.ids[i] == ino && cfg.exe_dev[i] == dev)
			return true;
	}
	return false;
}

/* Begins a record about a thread, with all arguments 0; false: there is no room. */
static __always_inline bool begin_record(struct rec *r)
{
	if (!begin(r, bpf_get_smp_processor_id()))
		return false;
	struct trace_wire *w = WIRE(r);
	__builtin_memset(w->args, 0, sizeof(w->args));
	w->ret = 0;
	r->s->off = HEAD_LEN;
	return true;
}

static __always_inline uint64_t key_of(struct cgroup *group)
{
	struct kernfs_node *kn = READ(group, kn);
	struct cgroup_root *root = READ(group, root);
	return trace_cgroup_key(READ(kn, id), (uint32_t)READ(root, hierarchy_id));
}

static __always_inline bool is_container(struct cgroup *group)
{
	uint64_t key = key_of(group);
	return bpf_map_lookup_elem(&containers, &key);
}

/* Whether it is in a container that is meant, by any hierarchy: each controller may have its own. */
static __always_inline bool has_container(struct task_struct *task)
{
	struct css_set *set = READ(task, cgroups);
	bool is_in = is_container(READ(set, dfl_cgrp));
	struct cgroup_subsys_state **of = (struct cgroup_subsys_state **)((uint8_t *)set + __builtin_preserve_field_info(set->subsys, 0));
	uint32_t cnt = __builtin_preserve_field_info(set->subsys, 1) / sizeof(*of);
	for (uint32_t i = 0; !is_in && i < CONTROLLERS && i < cnt; i++) {
		struct cgroup_subsys_state *css = NULL;
		bpf_probe_read_kernel(&css, sizeof(css), of + i);
		is_in = css && is_container(READ(css, cgroup));
	}
	return is_in;
}

/* Whether every kind of predicate that was given fits. */
static __always_inline bool is_match(struct task_struct *task, const void *comm)
{
	struct cred *cred = READ(task, cred);
	uint32_t m = cfg.match;
	return m && (!(m & TRACE_MATCH_UID) || has(&cfg.uid, READ(cred, uid.val))) &&
	       (!(m & TRACE_MATCH_CGROUP) || has(&cfg.cgroup, cgroup_of(task))) &&
	       (!(m & TRACE_MATCH_PID_NS) || has(&cfg.pid_ns, pid_ns_of(task))) &&
	       (!(m & TRACE_MATCH_MNT_NS) || has(&cfg.mnt_ns, mnt_ns_of(task))) && (!(m & TRACE_MATCH_EXE) || has_exe(task)) &&
	       (!(m & TRACE_MATCH_COMM) || has_comm(comm)) && (!(m & TRACE_MATCH_CONTAINER) || has_container(task));
}

/* Whether it is recorded now that one of these may have changed. */
static __always_inline bool judge(struct task_struct *task, const void *comm, bool was)
{
	return cfg.match ? (cfg.follow && was) || is_match(task, comm) : was;
}

/* A record of what is known of a thread now. */
static __always_inline void send_process(struct task_struct *task, const void *comm)
{
	struct rec rec, *r = &rec;
	if (!begin_record(r))
		return;
	put_proc(r, task, comm);
	send(r, TRACE_PROCESS, READ(task, pid));
}

/* `like` is the new thread; where only its number is known, the one that made it. */
static __always_inline void forked(struct task_struct *parent, struct task_struct *like, uint32_t tid, uint32_t tgid, bool is_sibling)
{
	bool is_thread = tgid == (uint32_t)READ(parent, tgid), was = is_recorded(READ(parent, pid)), yes = was;
	if (!is_thread && !cfg.invert)
		yes = (cfg.follow && was) || is_match(like, COMM(like));
	set_recorded(tid, yes);
	struct rec rec, *r = &rec;
	if (!(was || yes) || !begin_record(r))
		return;
	struct trace_wire *w = WIRE(r);
	w->args[0] = is_thread ? 0x10000 : 0; /* CLONE_THREAD */
	w->args[1] = tgid;
	w->ret = tid;
	struct trace_wire_proc *p = next_slot(r);
	put_proc(r, like, COMM(like));
	if (like == parent) {
		p->start = 0;
		p->tgid = tgid;
		if (!is_sibling)
			p->ppid = READ(parent, tgid);
	}
	send(r, TRACE_FORK, READ(parent, pid));
}

#ifdef TRACE_PERF
SEC(HOOK("task", "task_newtask"))
int trace_fork(uint64_t *ctx)
{
	const struct trace_event_raw_task_newtask *e = (const struct trace_event_raw_task_newtask *)ctx;
	struct task_struct *parent = bpf_get_current_task_btf();
	uint64_t flags = e->clone_flags;
	uint32_t tid = (uint32_t)e->pid;
	/* CLONE_THREAD; with that or CLONE_PARENT its parent is ours */
	forked(parent, parent, tid, flags & 0x10000 ? (uint32_t)READ(parent, tgid) : tid, flags & 0x18000);
	return 0;
}
#else
SEC(HOOK("sched", "sched_process_fork"))
int trace_fork(uint64_t *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];
	forked((struct task_struct *)ctx[0], child, READ(child, pid), READ(child, tgid), false);
	return 0;
}
#endif

SEC(HOOK("sched", "sched_process_exec"))
int trace_exec(uint64_t *ctx)
{
#ifdef TRACE_PERF
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t old = (uint32_t)((struct trace_event_raw_sched_process_exec *)ctx)->old_pid, tid = READ(task, pid);
	struct mm_struct *mm = READ(task, mm);
	struct file *file = READ(mm, exe_file);
#else
	struct task_struct *task = (struct task_struct *)ctx[0];
	uint32_t old = (uint32_t)ctx[1], tid = READ(task, pid);
	struct mm_struct *mm = READ(task, mm);
	struct file *file = READ((struct linux_binprm *)ctx[2], file);
#endif
	bool was = is_recorded(old), yes = judge(task, COMM(task), was);
	if (old != tid)
		set_recorded(old, false);
	set_recorded(tid, yes);
	struct rec rec, *r = &rec;
	if (!(was || yes) || !begin_record(r))
		return 0;
	struct trace_wire *w = WIRE(r);
	w->args[0] = old;
	struct fs_struct *fs = READ(task, fs);
	uint64_t args = READ(mm, arg_start), env = READ(mm, env_start);
	put_proc(r, task, COMM(task));
	put_file(r, TRACE_ARG_EXE, file);
	put_path(r, TRACE_ARG_CWD, READ(fs, pwd.mnt), READ(fs, pwd.dentry));
	put_memory(r, TRACE_ARG_ARGV, args, READ(mm, arg_end) - args);
	put_memory(r, TRACE_ARG_ENVP, env, READ(mm, env_end) - env);
	bpf_probe_read_kernel(next_slot(r), AUXV_LEN, __builtin_preserve_access_index(&mm->saved_auxv));
	put_slot(r, TRACE_WIRE_ARG_AUXV, TRACE_OK, AUXV_LEN, 0);
	send(r, TRACE_EXEC, tid);
	return 0;
}

SEC(HOOK("sched", "sched_process_exit"))
int trace_exit(uint64_t *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t tid = READ(task, pid);
	if (!is_recorded(tid))
		return 0;
	set_recorded(tid, false);
	struct rec rec, *r = &rec;
	if (!begin_record(r))
		return 0;
	struct trace_wire *w = WIRE(r);
	struct signal_struct *signal = READ(task, signal);
	w->args[0] = READ(signal, live.counter) == 0;
	w->ret = READ(task, exit_code);
	send(r, TRACE_EXIT, tid);
	return 0;
}

#define MOVED_THREADS 256 /* of a process: of more the rest is judged with its next program */

#ifdef TRACE_PERF
/* The thread of this number in the calling process; null: there is none among the first MOVED_THREADS. */
static __always_inline struct task_struct *thread_of(struct task_struct *task, uint32_t tid)
{
	struct signal_struct *signal = READ(task, signal);
	struct list_head *head = __builtin_preserve_access_index(&signal->thread_head), *node = READ(signal, thread_head.next);
	uint64_t node_off = __builtin_preserve_field_info(((struct task_struct *)0)->thread_node, 0);
	if ((uint32_t)READ(task, pid) == tid)
		return task;
	for (int i = 0; i < MOVED_THREADS && node != head; i++) {
		struct task_struct *thread = (struct task_struct *)((uint8_t *)node - node_off);
		if ((uint32_t)READ(thread, pid) == tid)
			return thread;
		node = READ(node, next);
	}
	return NULL;
}
#endif

SEC(HOOK("task", "task_rename"))
int trace_rename(uint64_t *ctx)
{
#ifdef TRACE_PERF
	const struct trace_event_raw_task_rename *e = (const struct trace_event_raw_task_rename *)ctx;
	struct task_struct *task = thread_of(bpf_get_current_task_btf(), (uint32_t)e->pid); /* no other process may name it */
	const void *comm = __builtin_preserve_access_index(&e->newcomm);
	if (!task)
		return 0;
#else
	struct task_struct *task = (struct task_struct *)ctx[0];
	const void *comm = (const void *)ctx[1];
#endif
	uint32_t tid = READ(task, pid);
	bool yes = is_recorded(tid);
	if (tid == cfg.tracer) {
		struct fs_struct *fs = READ(task, fs);
		shared.root_mnt = (uint64_t)READ(fs, root.mnt);
		shared.root_dentry = (uint64_t)READ(fs, root.dentry);
	}
	/* Who has taken a name that was asked for is recorded from here on; who gives one up, until it is another program. */
	if (!yes && cfg.match & TRACE_MATCH_COMM && is_match(task, comm)) {
		set_recorded(tid, true);
		yes = true;
	}
	if (yes)
		send_process(task, comm);
	return 0;
}

/* The thread itself has changed its user, its namespaces. */
static __always_inline void judge_self(struct task_struct *task)
{
	uint32_t tid = READ(task, pid);
	bool was = is_recorded(tid), yes = judge(task, COMM(task), was);
	set_recorded(tid, yes);
	if (was || yes)
		send_process(task, COMM(task));
}

#ifndef TRACE_PERF /* which tells no more than the number of whoever is moved, and who moves it is another process */
SEC(HOOK("cgroup", "cgroup_attach_task"))
int trace_cgroup_attach(uint64_t *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[2];
	bool was = is_recorded(READ(task, pid)), yes = judge(task, COMM(task), was);
	if (was || yes)
		send_process(task, COMM(task));
	if (was == yes)
		return 0;
	set_recorded(READ(task, pid), yes);
	struct signal_struct *signal = READ(task, signal);
	struct list_head *head = __builtin_preserve_access_index(&signal->thread_head), *node = READ(signal, thread_head.next);
	uint64_t node_off = __builtin_preserve_field_info(((struct task_struct *)0)->thread_node, 0);
	for (int i = 0; ctx[3] && i < MOVED_THREADS && node != head; i++) {
		struct task_struct *thread = (struct task_struct *)((uint8_t *)node - node_off);
		set_recorded(READ(thread, pid), yes);
		node = READ(node, next);
	}
	return 0;
}
#endif

/*
 * Whether the last 64 hexadecimal digits in a row in a folder's name (or path) begin as the container's id that is meant;
 * `otherwise` if there are none.
 */
static __always_inline bool is_named(struct state *s, const uint8_t *name, bool otherwise)
{
	volatile uint64_t *run = &s->elem, *end = &s->base; /* digits so far, and where 64 of them have ended */
	*run = *end = 0;
#pragma clang loop unroll(disable)
	for (uint64_t i = 0; i < NAME_LEN; i++) {
		uint8_t c = name[i];
		bool is_hex = (uint8_t)(c - '0') < 10 || (uint8_t)((c | 0x20) - 'a') < 6;
		if (!is_hex && *run == TRACE_CONTAINER_LEN)
			*end = i;
		*run = is_hex ? *run + 1 : 0;
		if (!c)
			break;
	}
	uint64_t at = *end - TRACE_CONTAINER_LEN;
	if (!*end)
		return otherwise;
	MASK(at, NAME_LEN - 1);
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < TRACE_CONTAINER_LEN && i < cfg.container_len; i++) {
		if (name[at + i] != (uint8_t)cfg.container[i])
			return false;
	}
	return true;
}

/* A container's cgroup, or one below it. */
SEC(HOOK("cgroup", "cgroup_mkdir"))
int trace_cgroup_mkdir(uint64_t *ctx)
{
	uint8_t *ring = ring_of(bpf_get_smp_processor_id());
	if (!ring)
		return 0;
	uint8_t *name = ring + TRACE_RING_SCRATCH;
#ifdef TRACE_PERF
	const struct trace_event_raw_cgroup *e = (const struct trace_event_raw_cgroup *)ctx;
	uint32_t path = e->__data_loc_path, path_len = path >> 16, skip = path_len > NAME_LEN ? path_len - NAME_LEN : 0;
	const void *from = (const uint8_t *)ctx + (path & 0xffff) + skip;
	uint64_t key = trace_cgroup_key(e->id, (uint32_t)e->root);
	bool below = false; /* else the path has the name of what it is below of */
#else
	struct cgroup *group = (struct cgroup *)ctx[0];
	struct cgroup_subsys_state *parent = READ(group, self.parent);
	struct kernfs_node *kn = READ(group, kn);
	const void *from = READ(kn, name);
	uint64_t key = key_of(group);
	bool below = parent && is_container(READ(parent, cgroup));
#endif
	int64_t len = bpf_probe_read_kernel_str(name, NAME_LEN, from);
	if (len <= 0 || !is_named((struct state *)ring, name, below))
		return 0;
	bpf_map_update_elem(&containers, &key, &key, 0);
	return 0;
}

SEC(HOOK("cgroup", "cgroup_rmdir"))
int trace_cgroup_rmdir(uint64_t *ctx)
{
#ifdef TRACE_PERF
	const struct trace_event_raw_cgroup *e = (const struct trace_event_raw_cgroup *)ctx;
	uint64_t key = trace_cgroup_key(e->id, (uint32_t)e->root);
#else
	uint64_t key = key_of((struct cgroup *)ctx[0]);
#endif
	bpf_map_delete_elem(&containers, &key);
	return 0;
}

SEC(HOOK("signal", "signal_deliver"))
int trace_signal(uint64_t *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	uint32_t tid = READ(task, pid);
	struct rec rec, *r = &rec;
	if (!cfg.with_signals || !is_recorded(tid) || !begin_record(r))
		return 0;
	struct trace_wire *w = WIRE(r);
#ifdef TRACE_PERF
	const struct trace_event_raw_signal_deliver *e = (const struct trace_event_raw_signal_deliver *)ctx;
	w->args[0] = (uint32_t)e->sig;
	w->args[1] = (uint64_t)(int64_t)e->code;
	w->args[3] = TRACE_SIGNAL_BARE;
#else
	uint32_t sig = (uint32_t)ctx[0];
	struct {
		int32_t signo, error, code, pad;
		uint64_t first; /* pid and uid, or the address of a fault (siginfo's first union member) */
	} info = {};
	bpf_probe_read_kernel(&info, sizeof(info), (const void *)ctx[1]);
	bool is_fault = info.code > 0 && (sig == 4 || sig == 5 || sig == 7 || sig == 8 || sig == 11);
	w->args[0] = sig;
	w->args[1] = (uint64_t)(int64_t)info.code;
	w->args[2] = is_fault ? info.first : (uint32_t)info.first;
#endif
	send(r, TRACE_SIGNAL, tid);
	return 0;
}

static __always_inline uint64_t third_arg(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return LOAD(regs, user_regs.regs[2]);
#else
	return LOAD(regs, dx);
#endif
}

/* After mmap, mprotect and pkey_mprotect that worked: a record of what may be executed now. */
static __always_inline void put_mapping(struct pt_regs *regs, uint64_t nr, int64_t ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct rec rec, *r = &rec;
	if (nr >= TRACE_IDS || (ret < 0 && ret >= -4095) || !(third_arg(regs) & 4) || !begin_record(r)) /* PROT_EXEC */
		return;
	bool is_new = cfg.desc[0][nr].fd_arg < 6;
	struct trace_wire *w = WIRE(r);
	load_args(w, regs, 0);
	uint32_t fd = (uint32_t)w->args[4];
	if (is_new) {
		w->args[0] = ret;
		w->args[4] = w->args[5];
	}
	if (is_new && !(w->args[3] & 0x20)) { /* MAP_ANONYMOUS */
		struct files_struct *files = READ(task, files);
		struct fdtable *fdt = READ(files, fdt);
		struct file **table = READ(fdt, fd), *file = NULL;
		if (fd < READ(fdt, max_fds))
			bpf_probe_read_kernel(&file, sizeof(file), table + fd);
		if (file)
			put_file(r, 0, file);
	}
	w->args[5] = 0;
	if (!is_new)
		w->args[3] = w->args[4] = 0;
	w->ret = 0;
	send(r, TRACE_MMAP, READ(task, pid));
}

#endif
#endif
