/* SPDX-License-Identifier: Apache-2.0 */
/* A program that tries to get out of where its functions are run, for tests/e2e/escape.sh. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
static long sys(long n, long a, long b, long c, long d, long e)
{ long r; register long r10 __asm__("r10") = d; register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory"); return r; }
void loops(void) { for (;;) __asm__ volatile(""); }
int faults(int *p) { return *p + 1; }
void jumps(void) { void (*volatile f)(void) = (void (*)(void))0x123456; f(); }
void illegal(void) { __builtin_trap(); }
int divides(int a, int b) { return a / b; }
int recurses(int n) { volatile char b[100]; b[n & 63] = 1; return recurses(n + 1) + b[1]; }
long forks(void) { return sys(SYS_fork, 0, 0, 0, 0, 0); }
long clones(void) { return sys(SYS_clone, 0x11, 0, 0, 0, 0); }
long opens(const char *p) { return sys(SYS_openat, AT_FDCWD, (long)p, O_WRONLY | O_CREAT, 0666, 0); }
long makes(const char *p) { return sys(SYS_mkdir, (long)p, 0777, 0, 0, 0); }
long removes(const char *p) { return sys(SYS_unlink, (long)p, 0, 0, 0, 0); }
long execs(const char *p) { const char *const a[] = {p, 0}; return sys(SYS_execve, (long)p, (long)a, 0, 0, 0); }
long connects(int port) { struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  long s = sys(SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0); return sys(SYS_connect, s, (long)&a, sizeof(a), 0, 0); }
long writes(int fd) { return sys(SYS_write, fd, (long)"escaped\n", 8, 0, 0); }
long kills(int pid) { return sys(SYS_kill, pid, SIGKILL, 0, 0, 0); }
long traces(int pid) { return sys(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0, 0); }
long maps(void) { return sys(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1); }
long old_calls(void) { long r; __asm__ volatile("int $0x80" : "=a"(r) : "0"(20L) : "memory"); return r; }
long ends_itself(void) { return sys(SYS_exit_group, 0, 0, 0, 0, 0); }
/* All that is mapped, the harness with it. */
void fills(unsigned long p) { for (;; p += 4096) *(volatile char *)p = 0x55; }
/* Where the call came from. */
void smashes(void) { volatile char *p = __builtin_frame_address(0); for (long i = 0; i < 100000; i++) p[i] = (char)0xcc; }
/* A system call of libc's own text, reached through the pointer an import is bound to. */
long borrows(const char *path)
{ const unsigned char *p = (const unsigned char *)&__errno_location; unsigned long fn; memcpy(&fn, p + 2, 8);
  for (p = (const unsigned char *)(fn & ~4095ul);; p++) if (p[0] == 0x0f && p[1] == 5 && p[2] == 0xc3) {
    long r; __asm__ volatile("call *%1" : "=a"(r) : "r"(p), "0"((long)SYS_unlink), "D"(path) : "rcx", "r11", "memory"); return r; }
}
int by_libc(const char *p) { FILE *f = fopen(p, "w"); if (f) fputs("escaped", f); return f != 0; }
/* The same into the middle of a function there. */
int middles(const char *s) { unsigned long fn; memcpy(&fn, (const char *)&strlen + 2, 8); return ((int (*)(const char *))(fn + 5))(s); }
long vforks(void) { return sys(SYS_vfork, 0, 0, 0, 0, 0); }
long new_clones(void) { return sys(435, 0, 0, 0, 0, 0); }
long rings(void) { static char params[120]; return sys(425, 8, (long)params, 0, 0, 0); }
long memory_files(void) { return sys(SYS_memfd_create, (long)"x", 0, 0, 0, 0); }
long dumps(void) { return sys(SYS_prctl, 4, 1, 0, 0, 0); }
long kills_all(void) { return sys(SYS_kill, -1, SIGKILL, 0, 0, 0); }
long stops(void) { return sys(SYS_kill, 0, SIGSTOP, 0, 0, 0); }
long own_memory(void) { return sys(SYS_open, (long)"/proc/self/mem", O_RDWR, 0, 0, 0); }
long others_memory(int pid) { char b[8]; struct { void *p; long n; } a = {b, 8};
  return sys(SYS_process_vm_writev, pid, (long)&a, 1, (long)&a, 1); }
long timers(void) { long t[4] = {0}; return sys(SYS_setitimer, 0, (long)t, 0, 0, 0); }
long alarms(void) { return sys(SYS_alarm, 0, 0, 0, 0, 0); }
long masks(void) { long m = -1; return sys(SYS_rt_sigprocmask, 0, (long)&m, 0, 8, 0); }
long handlers(void) { return sys(SYS_rt_sigaction, SIGSYS, 0, 0, 8, 0); }
long stacks(void) { long s[3] = {0, 2, 0}; return sys(SYS_sigaltstack, (long)s, 0, 0, 0, 0); }
long moves(void) { return sys(SYS_mremap, 0x70000000, 4096, 8192, 1, 0); }
long unmaps(void) { return sys(SYS_munmap, 0x10000000, 1l << 46, 0, 0, 0); }
long protects(long p) { return sys(SYS_mprotect, p & -4096, 4096, 7, 0, 0); }
long x32(void) { return sys(0x40000000 | SYS_getpid, 0, 0, 0, 0, 0); }
long old_execs(const char *p) { long r; __asm__ volatile("int $0x80" : "=a"(r) : "0"(11L), "b"(p), "c"(0L), "d"(0L) : "memory"); return r; }
/* All signals blocked and their stack taken away, which rt_sigreturn can do. */
void unstoppable(void) { static ucontext_t u; u.uc_flags = 6; u.uc_stack.ss_flags = 2; memset(&u.uc_sigmask, 0xff, 8);
  u.uc_mcontext.gregs[REG_RIP] = (greg_t)loops;
  u.uc_mcontext.gregs[REG_RSP] = (greg_t)__builtin_frame_address(0); u.uc_mcontext.gregs[REG_EFL] = 0x202;
  u.uc_mcontext.gregs[REG_CSGSFS] = 0x33 | 0x2bl << 48;
  __asm__ volatile("mov %0, %%rsp; mov $15, %%eax; syscall" :: "r"(&u) : "memory"); }
int main(void) { return 0; }
