/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs of system calls as strace(1) shows them. The layouts are those of the 64-bit ABIs (the kernel's own, not the C
 * library's: struct sigaction, struct termios); what is not here the kernel's BTF describes.
 */
#include "live/trace/trace_int.h"
#include "live/trace/trace_btf.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

enum kind { K_INT, K_UINT, K_HEX, K_OCT, K_PTR, K_FLAGS, K_ENUM, K_STR, K_SIGSET, K_SIGNAL, K_MODE, K_FD, K_SUB };

struct field {
	const char *name;
	uint16_t off, len;
	uint8_t kind;
	uint16_t set;    /* of flags and enums */
	const char *sub; /* of K_SUB: the type */
};

/* Shown where it is not 0. */
#define IF_SET 0x80

struct layout {
	const char *name;
	uint16_t len;
	bool is_short; /* ", ..." follows: not all fields are here */
	const struct field *fields;
};

#define FIELDS(name) static const struct field name[]
FIELDS(f_timespec) = {{"tv_sec", 0, 8, K_INT}, {"tv_nsec", 8, 8, K_INT}, {0}};
FIELDS(f_timeval) = {{"tv_sec", 0, 8, K_INT}, {"tv_usec", 8, 8, K_INT}, {0}};
FIELDS(f_timezone) = {{"tz_minuteswest", 0, 4, K_INT}, {"tz_dsttime", 4, 4, K_INT}, {0}};
FIELDS(f_itimerval) = {{"it_interval", 0, 16, K_SUB, 0, "__kernel_old_timeval"}, {"it_value", 16, 16, K_SUB, 0, "__kernel_old_timeval"}, {0}};
FIELDS(f_itimerspec) = {{"it_interval", 0, 16, K_SUB, 0, "__kernel_timespec"}, {"it_value", 16, 16, K_SUB, 0, "__kernel_timespec"}, {0}};
FIELDS(f_rusage) = {{"ru_utime", 0, 16, K_SUB, 0, "__kernel_old_timeval"}, {"ru_stime", 16, 16, K_SUB, 0, "__kernel_old_timeval"}, {0}};
FIELDS(f_tms) = {{"tms_utime", 0, 8, K_INT}, {"tms_stime", 8, 8, K_INT}, {"tms_cutime", 16, 8, K_INT}, {"tms_cstime", 24, 8, K_INT}, {0}};
FIELDS(f_utimbuf) = {{"actime", 0, 8, K_INT}, {"modtime", 8, 8, K_INT}, {0}};
FIELDS(f_flock) = {{"l_type", 0, 2, K_ENUM, SYSC_SET_lock_type}, {"l_whence", 2, 2, K_ENUM, SYSC_SET_whence}, {"l_start", 8, 8, K_INT},
		   {"l_len", 16, 8, K_INT}, {0}};
FIELDS(f_flock_pid) = {{"l_type", 0, 2, K_ENUM, SYSC_SET_lock_type}, {"l_whence", 2, 2, K_ENUM, SYSC_SET_whence}, {"l_start", 8, 8, K_INT},
		       {"l_len", 16, 8, K_INT}, {"l_pid", 24, 4, K_INT}, {0}};
FIELDS(f_owner_ex) = {{"type", 0, 4, K_INT}, {"pid", 4, 4, K_INT}, {0}};
FIELDS(f_winsize) = {{"ws_row", 0, 2, K_UINT}, {"ws_col", 2, 2, K_UINT}, {"ws_xpixel", 4, 2, K_UINT}, {"ws_ypixel", 6, 2, K_UINT}, {0}};
FIELDS(f_stack) = {{"ss_sp", 0, 8, K_PTR}, {"ss_flags", 8, 4, K_FLAGS, SYSC_SET_ss_flags}, {"ss_size", 16, 8, K_UINT}, {0}};
FIELDS(f_sembuf) = {{"sem_num", 0, 2, K_UINT}, {"sem_op", 2, 2, K_INT}, {"sem_flg", 4, 2, K_FLAGS, SYSC_SET_sem_flags}, {0}};
FIELDS(f_mq_attr) = {{"mq_flags", 0, 8, K_FLAGS, SYSC_SET_mq_flags}, {"mq_maxmsg", 8, 8, K_INT}, {"mq_msgsize", 16, 8, K_INT},
		     {"mq_curmsgs", 24, 8, K_INT}, {0}};
FIELDS(f_statfs) = {{"f_type", 0, 8, K_ENUM, SYSC_SET_fs_magic}, {"f_bsize", 8, 8, K_UINT}, {"f_blocks", 16, 8, K_UINT}, {"f_bfree", 24, 8, K_UINT},
		    {"f_bavail", 32, 8, K_UINT}, {"f_files", 40, 8, K_UINT}, {"f_ffree", 48, 8, K_UINT}, {"f_fsid", 56, 8, K_SUB, 0, "fsid"},
		    {"f_namelen", 64, 8, K_UINT}, {"f_frsize", 72, 8, K_UINT}, {"f_flags", 80, 8, K_FLAGS, SYSC_SET_statfs_flags}, {0}};
FIELDS(f_sysinfo) = {{"uptime", 0, 8, K_INT}, {"loads", 8, 24, K_SUB, 0, "loads"}, {"totalram", 32, 8, K_UINT}, {"freeram", 40, 8, K_UINT},
		     {"sharedram", 48, 8, K_UINT}, {"bufferram", 56, 8, K_UINT}, {"totalswap", 64, 8, K_UINT}, {"freeswap", 72, 8, K_UINT},
		     {"procs", 80, 2, K_UINT}, {"totalhigh", 88, 8, K_UINT}, {"freehigh", 96, 8, K_UINT}, {"mem_unit", 104, 4, K_UINT}, {0}};
FIELDS(f_utsname) = {{"sysname", 0, 65, K_STR}, {"nodename", 65, 65, K_STR}, {0}};
FIELDS(f_open_how) = {{"flags", 0, 8, K_FLAGS, SYSC_SET_open}, {"mode", 8, 8, K_OCT | IF_SET}, {"resolve", 16, 8, K_FLAGS, SYSC_SET_resolve}, {0}};
FIELDS(f_sigevent) = {{"sigev_signo", 8, 4, K_SIGNAL}, {"sigev_notify", 12, 4, K_ENUM, SYSC_SET_sigev_notify}, {0}};
FIELDS(f_file_handle) = {{"handle_bytes", 0, 4, K_UINT}, {"handle_type", 4, 4, K_INT}, {0}};
FIELDS(f_futex_waitv) = {{"val", 0, 8, K_HEX}, {"uaddr", 8, 8, K_PTR}, {"flags", 16, 4, K_FLAGS, SYSC_SET_futex2}, {0}};
FIELDS(f_cachestat_range) = {{"off", 0, 8, K_UINT}, {"len", 8, 8, K_UINT}, {0}};
FIELDS(f_cachestat) = {{"nr_cache", 0, 8, K_UINT}, {"nr_dirty", 8, 8, K_UINT}, {"nr_writeback", 16, 8, K_UINT}, {"nr_evicted", 24, 8, K_UINT},
		       {"nr_recently_evicted", 32, 8, K_UINT}, {0}};
FIELDS(f_mount_attr) = {{"attr_set", 0, 8, K_FLAGS, SYSC_SET_mount_attr}, {"attr_clr", 8, 8, K_FLAGS, SYSC_SET_mount_attr},
			{"propagation", 16, 8, K_FLAGS, SYSC_SET_mount}, {"userns_fd", 24, 8, K_UINT}, {0}};
FIELDS(f_sched_attr) = {{"size", 0, 4, K_UINT}, {"sched_policy", 4, 4, K_ENUM, SYSC_SET_sched_policy},
			{"sched_flags", 8, 8, K_FLAGS, SYSC_SET_sched_attr_flags}, {"sched_nice", 16, 4, K_INT}, {"sched_priority", 20, 4, K_UINT},
			{"sched_runtime", 24, 8, K_UINT}, {"sched_deadline", 32, 8, K_UINT}, {"sched_period", 40, 8, K_UINT}, {0}};
FIELDS(f_io_event) = {{"data", 0, 8, K_HEX}, {"obj", 8, 8, K_PTR}, {"res", 16, 8, K_INT}, {"res2", 24, 8, K_INT}, {0}};
FIELDS(f_uring_params) = {{"sq_entries", 0, 4, K_UINT}, {"cq_entries", 4, 4, K_UINT}, {"flags", 8, 4, K_FLAGS, SYSC_SET_uring_setup},
			  {"sq_thread_cpu", 12, 4, K_UINT}, {"sq_thread_idle", 16, 4, K_UINT},
			  {"features", 20, 4, K_FLAGS, SYSC_SET_uring_features}, {"wq_fd", 24, 4, K_UINT}, {0}};
FIELDS(f_aio_sigset) = {{"sigmask", 0, 8, K_PTR}, {"sigsetsize", 8, 8, K_UINT}, {0}};
FIELDS(f_iovec) = {{"iov_base", 0, 8, K_PTR}, {"iov_len", 8, 8, K_UINT}, {0}};
FIELDS(f_ipc_perm) = {{"uid", 4, 4, K_INT}, {"gid", 8, 4, K_INT}, {"mode", 20, 4, K_OCT}, {"key", 0, 4, K_INT}, {"cuid", 12, 4, K_INT},
		      {"cgid", 16, 4, K_INT}, {0}};
FIELDS(f_shmid) = {{"shm_perm", 0, 48, K_SUB, 0, "ipc64_perm"}, {"shm_segsz", 48, 8, K_UINT}, {"shm_cpid", 80, 4, K_INT}, {"shm_lpid", 84, 4, K_INT},
		   {"shm_nattch", 88, 8, K_UINT}, {"shm_atime", 56, 8, K_INT}, {"shm_dtime", 64, 8, K_INT}, {"shm_ctime", 72, 8, K_INT}, {0}};

/* By name. */
static const struct layout layouts[] = {
	{"__aio_sigset", 16, false, f_aio_sigset},
	{"__kernel_itimerspec", 32, false, f_itimerspec},
	{"__kernel_old_itimerval", 32, false, f_itimerval},
	{"__kernel_old_timeval", 16, false, f_timeval},
	{"__kernel_timespec", 16, false, f_timespec},
	{"cachestat", 40, false, f_cachestat},
	{"cachestat_range", 16, false, f_cachestat_range},
	{"f_owner_ex", 8, false, f_owner_ex},
	{"file_handle", 8, true, f_file_handle},
	{"flock", 32, false, f_flock},
	{"flock with l_pid", 32, false, f_flock_pid}, /* of F_GETLK, where it is an answer */
	{"futex_waitv", 24, false, f_futex_waitv},
	{"io_event", 32, false, f_io_event},
	{"io_uring_params", 120, true, f_uring_params},
	{"iovec", 16, false, f_iovec},
	{"ipc64_perm", 48, false, f_ipc_perm},
	{"mount_attr", 32, false, f_mount_attr},
	{"mq_attr", 64, false, f_mq_attr},
	{"new_utsname", 390, true, f_utsname},
	{"open_how", 24, false, f_open_how},
	{"rusage", 144, true, f_rusage},
	{"sched_attr", 48, false, f_sched_attr},
	{"sembuf", 6, false, f_sembuf},
	{"shmid_ds", 112, false, f_shmid},
	{"sigevent", 64, false, f_sigevent},
	{"stack_t", 24, false, f_stack},
	{"statfs", 120, false, f_statfs},
	{"sysinfo", 112, false, f_sysinfo},
	{"timezone", 8, false, f_timezone},
	{"tms", 32, false, f_tms},
	{"utimbuf", 16, false, f_utimbuf},
	{"winsize", 8, false, f_winsize},
};

static uint64_t load(const uint8_t *p, size_t len, bool is_signed)
{
	uint64_t v = 0;
	memcpy(&v, p, MIN(len, 8));
	if (is_signed && len < 8)
		v = (uint64_t)((int64_t)(v << (64 - 8 * len)) >> (64 - 8 * len));
	return v;
}

static void put_list(struct buf *out, const uint8_t *p, size_t cnt, size_t each, const char *fmt_hex)
{
	buf_add_ch(out, '[');
	for (size_t i = 0; i < cnt; i++) {
		uint64_t v = load(p + i * each, each, false);
		buf_add_str(out, i ? ", " : "");
		buf_printf(out, fmt_hex && v ? "0x%" PRIx64 : fmt_hex ? "%" PRIx64 : "%" PRIu64, v);
	}
	buf_add_ch(out, ']');
}

static void put_field(const struct tx *t, struct buf *out, const struct field *f, const uint8_t *p)
{
	uint64_t v = load(p, f->len, f->kind == K_INT);
	switch (f->kind & ~IF_SET) {
	case K_INT: buf_printf(out, "%" PRId64, (int64_t)v); break;
	case K_UINT: buf_printf(out, "%" PRIu64, v); break;
	case K_HEX: buf_printf(out, v ? "0x%" PRIx64 : "%" PRIx64, v); break;
	case K_OCT: buf_printf(out, "0%03" PRIo64, v); break;
	case K_PTR: trace_put_ptr(out, v); break;
	case K_FLAGS: trace_put_flags(out, t->ev->abi, f->set, v); break;
	case K_ENUM: trace_put_enum(out, t->ev->abi, f->set, v); break;
	case K_STR: trace_put_quoted(out, p, strnlen((const char *)p, f->len), false); break;
	case K_SIGSET: trace_put_sigset(out, v); break;
	case K_SIGNAL: trace_put_signal(out, (int)v); break;
	case K_MODE: trace_put_mode(out, (uint32_t)v); break;
	case K_FD: trace_put_fd(out, t, (int32_t)v); break;
	case K_SUB: trace_put_struct(t, out, f->sub, p, f->len); break;
	default: break;
	}
}

static void put_layout(const struct tx *t, struct buf *out, const struct layout *l, const uint8_t *p, size_t len)
{
	bool any = false, is_cut = false;
	buf_add_ch(out, '{');
	for (const struct field *f = l->fields; f->name; f++) {
		if (f->off + (size_t)f->len > len) {
			is_cut = true;
			continue;
		}
		if (f->kind & IF_SET && !load(p + f->off, f->len, false))
			continue;
		buf_printf(out, any ? ", %s=" : "%s=", f->name);
		put_field(t, out, f, p + f->off);
		any = true;
	}
	buf_add_str(out, l->is_short || is_cut ? any ? ", ...}" : "...}" : "}");
}

/* --- structs with a shape of their own ------------------------------------------------------------------------------- */
static void put_stat(struct buf *out, const uint8_t *p)
{
	uint32_t mode = load_u32(p + 24, false);
	buf_add_str(out, "{st_mode=");
	trace_put_mode(out, mode);
	if ((mode & 0170000) == 0020000 || (mode & 0170000) == 0060000) {
		buf_add_str(out, ", st_rdev=");
		trace_put_dev(out, load_u64(p + 40, false));
	} else {
		buf_printf(out, ", st_size=%" PRId64, (int64_t)load_u64(p + 48, false));
	}
	buf_add_str(out, ", ...}");
}

/* arm64 has st_mode at 16, st_size at 48 and st_rdev at 32 (asm-generic/stat.h). */
static void put_stat_arm64(struct buf *out, const uint8_t *p)
{
	uint8_t same[144] = {0};
	memcpy(same + 24, p + 16, 4);
	memcpy(same + 40, p + 32, 8);
	memcpy(same + 48, p + 48, 8);
	put_stat(out, same);
}

static void put_statx(struct buf *out, const uint8_t *p)
{
	uint32_t mode = load_u16(p + 28, false);
	buf_add_str(out, "{stx_mask=");
	trace_put_flags(out, TRACE_X86_64, SYSC_SET_statx_mask, load_u32(p, false));
	buf_add_str(out, ", stx_attributes=");
	trace_put_flags(out, TRACE_X86_64, SYSC_SET_statx_attr, load_u64(p + 8, false));
	buf_add_str(out, ", stx_mode=");
	trace_put_mode(out, mode);
	buf_printf(out, ", stx_size=%" PRIu64 ", ...}", load_u64(p + 40, false));
}

/* The kernel's: handler, flags, restorer, mask at 0, 8, 16, 24. */
static void put_sigaction(struct buf *out, const uint8_t *p)
{
	uint64_t handler = load_u64(p, false), flags = load_u64(p + 8, false);
	buf_add_str(out, "{sa_handler=");
	if (handler < 2)
		buf_add_str(out, handler ? "SIG_IGN" : "SIG_DFL");
	else
		trace_put_ptr(out, handler);
	buf_add_str(out, ", sa_mask=");
	trace_put_sigset(out, load_u64(p + 24, false));
	buf_add_str(out, ", sa_flags=");
	trace_put_flags(out, TRACE_X86_64, SYSC_SET_sa_flags, flags);
	if (flags & 0x04000000) { /* SA_RESTORER */
		buf_add_str(out, ", sa_restorer=");
		trace_put_ptr(out, load_u64(p + 16, false));
	}
	buf_add_ch(out, '}');
}

static void put_limit(struct buf *out, uint64_t v)
{
	if (v == UINT64_MAX)
		buf_add_str(out, "RLIM64_INFINITY");
	else if (v > 1024 && v % 1024 == 0)
		buf_printf(out, "%" PRIu64 "*1024", v / 1024);
	else
		buf_printf(out, "%" PRIu64, v);
}

static void put_rlimit(struct buf *out, const uint8_t *p)
{
	buf_add_str(out, "{rlim_cur=");
	put_limit(out, load_u64(p, false));
	buf_add_str(out, ", rlim_max=");
	put_limit(out, load_u64(p + 8, false));
	buf_add_ch(out, '}');
}

static unsigned code_set(uint32_t sig)
{
	switch (sig) {
	case SIGSEGV: return SYSC_SET_si_segv;
	case SIGBUS: return SYSC_SET_si_bus;
	case SIGFPE: return SYSC_SET_si_fpe;
	case SIGILL: return SYSC_SET_si_ill;
	case SIGTRAP: return SYSC_SET_si_trap;
	case SIGCHLD: return SYSC_SET_si_chld;
	case SIGIO: return SYSC_SET_si_poll;
	case SIGSYS: return SYSC_SET_si_sys;
	default: return SYSC_SET_si_code;
	}
}

static void put_chld(struct buf *out, const uint8_t *p, int32_t code)
{
	buf_printf(out, ", si_pid=%d, si_uid=%u, si_status=", (int)load_u32(p + 16, false), load_u32(p + 20, false));
	if (code == CLD_EXITED)
		buf_printf(out, "%d", (int)load_u32(p + 24, false));
	else
		trace_put_signal(out, (int)load_u32(p + 24, false));
	buf_printf(out, ", si_utime=%" PRId64 ", si_stime=%" PRId64, (int64_t)load_u64(p + 32, false), (int64_t)load_u64(p + 40, false));
}

bool trace_signal_has_code(const struct trace_event *ev)
{
	return ev->args[0] != SIGKILL;
}

enum trace_origin trace_origin_of(int sig, int32_t code)
{
	if (code > 0 && (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP))
		return TRACE_ORIGIN_FAULT;
	if (code > 0)
		return sig == SIGCHLD && code != SI_KERNEL ? TRACE_ORIGIN_PROCESS : TRACE_ORIGIN_KERNEL;
	return code == SI_USER || code == SI_QUEUE || code == SI_TKILL || code == SI_MESGQ ? TRACE_ORIGIN_PROCESS : TRACE_ORIGIN_KERNEL;
}

void trace_put_signal_short(struct buf *out, const struct trace_event *ev)
{
	int sig = (int)ev->args[0];
	int32_t code = (int32_t)ev->args[1];
	buf_add_str(out, "{si_signo=");
	trace_put_signal(out, sig);
	if (!trace_signal_has_code(ev)) {
		buf_add_str(out, ", ...}");
		return;
	}
	buf_add_str(out, ", si_code=");
	trace_put_enum(out, TRACE_X86_64, code > 0 && code != SI_KERNEL ? code_set((uint32_t)sig) : SYSC_SET_si_code, (uint32_t)code);
	enum trace_origin from = ev->args[3] & TRACE_SIGNAL_BARE ? TRACE_ORIGIN_KERNEL : trace_origin_of(sig, code);
	if (from == TRACE_ORIGIN_FAULT) {
		buf_add_str(out, ", si_addr=");
		trace_put_ptr(out, ev->args[2]);
	} else if (from == TRACE_ORIGIN_PROCESS) {
		buf_printf(out, ", si_pid=%d", (int)ev->args[2]);
	}
	buf_add_str(out, ", ...}");
}

/* siginfo_t, sigaction(2): si_signo, si_errno, si_code at 0, 4, 8; the union at 16. */
void trace_put_siginfo(struct buf *out, const uint8_t *p, size_t len)
{
	if (len < 48) {
		buf_add_str(out, "{...}");
		return;
	}
	uint32_t sig = load_u32(p, false), err = load_u32(p + 4, false);
	int32_t code = (int32_t)load_u32(p + 8, false);
	if (!sig && !err && !code) {
		buf_add_str(out, "{}");
		return;
	}
	buf_add_str(out, "{si_signo=");
	trace_put_signal(out, (int)sig);
	if (err) {
		buf_add_str(out, ", si_errno=");
		trace_put_enum(out, TRACE_X86_64, SYSC_SET_errno, err);
	}
	buf_add_str(out, ", si_code=");
	trace_put_enum(out, TRACE_X86_64, code > 0 && code != SI_KERNEL ? code_set(sig) : SYSC_SET_si_code, (uint32_t)code);
	if (code == SI_TIMER)
		buf_printf(out, ", si_timerid=%#x, si_overrun=%d", load_u32(p + 16, false), (int)load_u32(p + 20, false));
	else if (code > 0 && sig == SIGCHLD)
		put_chld(out, p, code);
	else if (trace_origin_of((int)sig, code) == TRACE_ORIGIN_FAULT) {
		buf_add_str(out, ", si_addr=");
		trace_put_ptr(out, load_u64(p + 16, false));
	} else if (code > 0 && sig == SIGSYS) {
		buf_add_str(out, ", si_call_addr=");
		trace_put_ptr(out, load_u64(p + 16, false));
		buf_printf(out, ", si_syscall=%d", (int)load_u32(p + 24, false));
	} else if (code <= 0) {
		buf_printf(out, ", si_pid=%d, si_uid=%u", (int)load_u32(p + 16, false), load_u32(p + 20, false));
		if (code == SI_QUEUE)
			buf_printf(out, ", si_int=%d", (int)load_u32(p + 24, false));
	}
	buf_add_ch(out, '}');
}

static void put_caps(struct buf *out, const uint8_t *p, size_t len)
{
	static const char *const names[] = {"{effective=", ", permitted=", ", inheritable="};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uint64_t v = load_u32(p + 4 * i, false) | (len >= 24 ? (uint64_t)load_u32(p + 12 + 4 * i, false) << 32 : 0);
		bool any = false;
		buf_add_str(out, names[i]);
		for (uint64_t cap = 0; cap < 64; cap++) {
			const char *name = v >> cap & 1 ? sysc_set_name(TRACE_X86_64, SYSC_SET_capability, cap) : NULL;
			if (v >> cap & 1)
				buf_printf(out, any ? "|1<<%s" : "1<<%s", name ? name : "??");
			any |= v >> cap & 1;
		}
		if (!any)
			buf_add_ch(out, '0');
	}
	buf_add_ch(out, '}');
}

static void put_cap_header(struct buf *out, const uint8_t *p)
{
	uint32_t version = load_u32(p, false);
	unsigned n = version == 0x19980330 ? 1 : version == 0x20071026 ? 2 : version == 0x20080522 ? 3 : 0;
	buf_add_str(out, "{version=");
	if (n)
		buf_printf(out, "_LINUX_CAPABILITY_VERSION_%u", n);
	else
		buf_printf(out, "%#x", version);
	buf_printf(out, ", pid=%d}", (int)load_u32(p + 4, false));
}

static void put_epoll_event(const struct tx *t, struct buf *out, const uint8_t *p, size_t len)
{
	uint64_t data = load_u64(p + len - 8, false); /* packed in x86-64, at 8 in arm64 */
	buf_add_str(out, "{events=");
	trace_put_flags(out, t->ev->abi, SYSC_SET_epoll_events, load_u32(p, false));
	buf_printf(out, ", data={u32=%u, u64=%" PRIu64 "}}", (uint32_t)data, data);
}

static void put_pollfd(const struct tx *t, struct buf *out, const uint8_t *p)
{
	buf_add_str(out, "{fd=");
	trace_put_fd(out, t, (int32_t)load_u32(p, false));
	buf_add_str(out, ", events=");
	trace_put_flags(out, t->ev->abi, SYSC_SET_poll_events, load_u16(p + 4, false));
	buf_add_ch(out, '}');
}

/* struct clone_args, clone(2): eight words, then set_tid, set_tid_size, cgroup. */
static void put_clone_args(struct buf *out, const uint8_t *p, size_t len)
{
	uint64_t w[11] = {0};
	memcpy(w, p, MIN(len, sizeof(w)) & ~(size_t)7);
	buf_add_str(out, "{flags=");
	trace_put_flags(out, TRACE_X86_64, SYSC_SET_clone, w[0]);
	if (w[0] & 0x1000) /* CLONE_PIDFD */
		buf_printf(out, ", pidfd=0x%" PRIx64, w[1]);
	if (w[0] & (0x01000000 | 0x00200000)) /* CLONE_CHILD_SETTID, CLEARTID */
		buf_printf(out, ", child_tid=0x%" PRIx64, w[2]);
	if (w[0] & 0x00100000) /* CLONE_PARENT_SETTID */
		buf_printf(out, ", parent_tid=0x%" PRIx64, w[3]);
	buf_add_str(out, ", exit_signal=");
	trace_put_signal(out, (int)w[4]);
	buf_add_str(out, ", stack=");
	trace_put_ptr(out, w[5]);
	buf_printf(out, w[6] ? ", stack_size=0x%" PRIx64 : ", stack_size=%" PRIx64, w[6]);
	if (w[0] & 0x00080000) /* CLONE_SETTLS */
		buf_printf(out, ", tls=0x%" PRIx64, w[7]);
	buf_add_ch(out, '}');
}

static bool put_special(const struct tx *t, struct buf *out, const char *name, const uint8_t *p, size_t len)
{
	if ((!strcmp(name, "stat") || !strcmp(name, "stat64")) && len >= 128) {
		if (t->ev->abi == TRACE_ARM64)
			put_stat_arm64(out, p);
		else
			put_stat(out, p);
	} else if (!strcmp(name, "statx") && len >= 48)
		put_statx(out, p);
	else if (!strcmp(name, "sigaction") && len >= 32)
		put_sigaction(out, p);
	else if ((!strcmp(name, "rlimit") || !strcmp(name, "rlimit64")) && len >= 16)
		put_rlimit(out, p);
	else if (!strcmp(name, "siginfo") || !strcmp(name, "siginfo_t"))
		trace_put_siginfo(out, p, len);
	else if (!strcmp(name, "sigset_t") && len >= 8)
		trace_put_sigset(out, load_u64(p, false));
	else if (!strcmp(name, "cap_user_data_t") && len >= 12)
		put_caps(out, p, len);
	else if (!strcmp(name, "cap_user_header_t") && len >= 8)
		put_cap_header(out, p);
	else if (!strcmp(name, "epoll_event") && len >= 12)
		put_epoll_event(t, out, p, len);
	else if (!strcmp(name, "pollfd") && len >= 8)
		put_pollfd(t, out, p);
	else if (!strcmp(name, "clone_args") && len >= 64)
		put_clone_args(out, p, len);
	else if (!strcmp(name, "fsid") && len >= 8) {
		buf_add_str(out, "{val=");
		put_list(out, p, 2, 4, "x");
		buf_add_ch(out, '}');
	} else if (!strcmp(name, "loads") && len >= 24)
		put_list(out, p, 3, 8, NULL);
	else if (!strcmp(name, "sched_param") && len >= 4)
		put_list(out, p, 1, 4, NULL);
	else
		return false;
	return true;
}

/* Types that are one number: "int *" is shown as [5]. */
static bool put_number(struct buf *out, const char *name, const uint8_t *p, size_t len)
{
	static const struct {
		const char *name;
		uint8_t len;
		char how;
	} numbers[] = {{"int", 4, 'd'}, {"u32", 4, 'u'}, {"unsigned", 4, 'u'}, {"unsigned int", 4, 'u'}, {"uid_t", 4, 'd'}, {"gid_t", 4, 'd'},
		       {"timer_t", 4, 'd'}, {"loff_t", 8, 'd'}, {"off_t", 8, 'd'}, {"size_t", 8, 'u'}, {"u64", 8, 'u'},
		       {"unsigned long", 8, 'x'}, {"__kernel_old_time_t", 8, 'd'}, {"aio_context_t", 8, 'x'}};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		if (strcmp(name, numbers[i].name) != 0)
			continue;
		if (len < numbers[i].len)
			return false;
		uint64_t v = load(p, numbers[i].len, numbers[i].how == 'd');
		if (numbers[i].how == 'd')
			buf_printf(out, "%" PRId64, (int64_t)v);
		else
			buf_printf(out, numbers[i].how == 'u' ? "%" PRIu64 : v ? "0x%" PRIx64 : "%" PRIx64, v);
		return true;
	}
	return false;
}

bool trace_put_struct(const struct tx *t, struct buf *out, const char *ctype, const uint8_t *bytes, size_t len)
{
	char name[64];
	const char *from = ctype;
	while (!strncmp(from, "const ", 6) || !strncmp(from, "struct ", 7) || !strncmp(from, "union ", 6))
		from = strchr(from, ' ') + 1;
	snprintf(name, sizeof(name), "%s", from);
	size_t end = strcspn(name, "*");
	while (end && name[end - 1] == ' ')
		end--;
	name[end] = 0;
	if (put_number(out, name, bytes, len) || put_special(t, out, name, bytes, len))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
		if (!strcmp(layouts[i].name, name)) {
			put_layout(t, out, &layouts[i], bytes, len);
			return true;
		}
	return t->o->btf && trace_btf_put(t->o->btf, name, bytes, len, out);
}
