/* SPDX-License-Identifier: Apache-2.0 */
#include "base/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

struct guard_view {
	atomic_uintptr_t base; /* 0: free slot */
	atomic_size_t len;
	atomic_bool is_hit;
};

static struct guard_view guard_views[GUARD_MAX];
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction guard_previous;
static bool guard_is_installed;

/* Only async-signal-safe work: atomics and one mmap (a bare system call on Linux). */
static bool guard_patch(uintptr_t addr)
{
	for (size_t i = 0; i < GUARD_MAX; i++) {
		struct guard_view *v = &guard_views[i];
		uintptr_t base = atomic_load(&v->base);
		if (!base || addr < base || addr - base >= atomic_load(&v->len))
			continue;
		uintptr_t page_len = (uintptr_t)sysconf(_SC_PAGESIZE);
		void *page = (void *)(addr & ~(page_len - 1));
		atomic_store(&v->is_hit, true);
		return mmap(page, page_len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
	}
	return false;
}

static void guard_handler(int sig, siginfo_t *info, void *context)
{
	if (guard_patch((uintptr_t)info->si_addr))
		return;
	if (guard_previous.sa_flags & SA_SIGINFO) {
		guard_previous.sa_sigaction(sig, info, context);
	} else if (guard_previous.sa_handler != SIG_DFL && guard_previous.sa_handler != SIG_IGN) {
		guard_previous.sa_handler(sig);
	} else {
		/* Give the default back; the faulting instruction runs again and ends the process. */
		sigaction(sig, &guard_previous, NULL);
	}
}

struct guard_view *guard_add(const void *base, size_t len)
{
	struct guard_view *found = NULL;
	pthread_mutex_lock(&guard_lock);
	if (!guard_is_installed) {
		struct sigaction act = {.sa_sigaction = guard_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
		sigemptyset(&act.sa_mask);
		guard_is_installed = sigaction(SIGBUS, &act, &guard_previous) == 0;
	}
	for (size_t i = 0; guard_is_installed && i < GUARD_MAX && !found; i++) {
		if (!atomic_load(&guard_views[i].base))
			found = &guard_views[i];
	}
	if (found) {
		atomic_store(&found->is_hit, false);
		atomic_store(&found->len, len);
		atomic_store(&found->base, (uintptr_t)base);
	}
	pthread_mutex_unlock(&guard_lock);
	return found;
}

void guard_del(struct guard_view *v)
{
	if (v)
		atomic_store(&v->base, 0);
}

bool guard_was_hit(const struct guard_view *v)
{
	return v && atomic_load(&v->is_hit);
}
