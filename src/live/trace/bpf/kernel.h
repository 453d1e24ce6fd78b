/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TRACE_BPF_KERNEL_H
#define LIVE_TRACE_BPF_KERNEL_H

#ifdef __bpf__ /* clang's target; for nobody else */

/*
 * What of the kernel the programs in this folder touch: only the members that are read, found in the running
 * kernel's own types when the programs are loaded (CO-RE).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int8_t __s8;
typedef int16_t __s16;
typedef int32_t __s32;
typedef int64_t __s64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint32_t __wsum;

#include <bpf/bpf_helpers.h>

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PROG_ARRAY = 3, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_F_MMAPABLE = 1 << 10, BPF_RB_FORCE_WAKEUP = 2 };

#define KERNEL __attribute__((preserve_access_index))

#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	uint64_t regs[31], sp, pc;
} KERNEL;
struct pt_regs {
	struct user_pt_regs user_regs;
	uint64_t orig_x0;
	int32_t syscallno;
} KERNEL;
#else
struct pt_regs {
	unsigned long r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
	unsigned long bx, bp;
} KERNEL;
#endif

struct thread_info {
	unsigned long flags;
	uint32_t status;
	uint32_t cpu;
} KERNEL;


struct cred {
	struct { unsigned int val; } uid, gid, euid;
} KERNEL;

struct ns_common { unsigned int inum; } KERNEL;
struct mnt_namespace { struct ns_common ns; } KERNEL;
struct pid_namespace { struct ns_common ns; } KERNEL;
struct nsproxy {
	struct mnt_namespace *mnt_ns;
	struct pid_namespace *pid_ns_for_children;
} KERNEL;

struct qstr { const unsigned char *name; } KERNEL;
struct super_block { uint32_t s_dev; } KERNEL;
struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
} KERNEL;
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
} KERNEL;
struct vfsmount { struct dentry *mnt_root; } KERNEL;
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} KERNEL;
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} KERNEL;
struct file {
	struct path f_path;
	struct inode *f_inode;
} KERNEL;
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL;
struct files_struct { struct fdtable *fdt; } KERNEL;
struct fs_struct { struct path root, pwd; } KERNEL;

typedef struct { int counter; } atomic_t;

struct mm_struct {
	atomic_t mm_users;
	unsigned long arg_start, arg_end, env_start, env_end;
	unsigned long saved_auxv[52];
	struct file *exe_file;
} KERNEL;

struct linux_binprm {
	struct file *file;
	const char *filename;
} KERNEL;

struct kernfs_node {
	uint64_t id;
	const char *name;
} KERNEL;
struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} KERNEL;
struct cgroup_root { int hierarchy_id; } KERNEL;
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
} KERNEL;
struct css_set {
	struct cgroup_subsys_state *subsys[14];
	struct cgroup *dfl_cgrp;
} KERNEL;

struct list_head { struct list_head *next, *prev; } KERNEL;

struct signal_struct {
	atomic_t live;
	struct list_head thread_head;
} KERNEL;

struct task_struct {
	struct thread_info thread_info;
	int pid, tgid, exit_code;
	uint64_t start_boottime;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct cred *cred;
	struct nsproxy *nsproxy;
	struct files_struct *files;
	struct fs_struct *fs;
	struct mm_struct *mm;
	struct css_set *cgroups;
	struct list_head thread_node;
	char comm[16];
} KERNEL;

/* What perf's tracepoints hand over, by the kernel's own types of them. */
struct trace_event_raw_sys_enter { long id; } KERNEL;
struct trace_event_raw_sys_exit { long ret; } KERNEL;
struct trace_event_raw_task_newtask {
	int pid;
	uint64_t clone_flags;
} KERNEL;
struct trace_event_raw_task_rename {
	int pid;
	char newcomm[16];
} KERNEL;
struct trace_event_raw_sched_process_exec { int old_pid; } KERNEL;
struct trace_event_raw_signal_deliver { int sig, code; } KERNEL;
struct trace_event_raw_cgroup {
	int root;
	uint64_t id;
	uint32_t __data_loc_path;
} KERNEL;

/*
 * Three ways to be called: with typed pointers; with the same pointers and no types, so that all is read (TRACE_READS); with what perf
 * makes of them (TRACE_PERF), which has no pointers: registers and task are the calling thread's then, and some events know less.
 */
#ifdef TRACE_PERF
#define TRACE_READS
#define HOOK(group, name) "tracepoint/" group "/" name
#define REGS(ctx) ((struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()))
#define ENTER_NR(ctx) ((uint64_t)((struct trace_event_raw_sys_enter *)(ctx))->id)
#define EXIT_RET(ctx) ((int64_t)((struct trace_event_raw_sys_exit *)(ctx))->ret)
#else
#ifdef TRACE_READS
#define HOOK(group, name) "raw_tp/" name
#else
#define HOOK(group, name) "tp_btf/" name
#endif
#define REGS(ctx) ((struct pt_regs *)(ctx)[0])
#define ENTER_NR(ctx) ((ctx)[1])
#define EXIT_RET(ctx) ((int64_t)(ctx)[1])
#endif

#if defined(__TARGET_ARCH_arm64)
#define SYSCALL_NR(regs) ((uint64_t)(int64_t)LOAD(regs, syscallno))
#else
#define SYSCALL_NR(regs) LOAD(regs, orig_ax)
#endif

/* A member through a pointer the verifier knows (typed tracepoints): a plain load. Elsewhere: a read. */
#ifdef TRACE_READS
#define LOAD(from, member) ({ typeof((from)->member) v_; \
	bpf_probe_read_kernel(&v_, sizeof(v_), __builtin_preserve_access_index(&(from)->member)); v_; })
#else
#define LOAD(from, member) ((from)->member)
#endif

/* A member through any other pointer. */
#define READ(from, member) ({ typeof((from)->member) v_ = 0; \
	bpf_probe_read_kernel(&v_, sizeof(v_), __builtin_preserve_access_index(&(from)->member)); v_; })

#endif
#endif
