/* SPDX-License-Identifier: Apache-2.0 */
#include "base/holes.h"

#include "base/bits.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORD_BITS 64

struct holes {
	uint8_t *data;
	uint64_t len; /* bytes */
	uint32_t block_len;
	size_t block_cnt;
	/* Bits of blocks. What is in `have` can be read; `wanted` was asked for by a reader, `given` was handed to the thread that fills. */
	_Atomic uint64_t *have, *wanted;
	uint64_t *given;
	atomic_uint news;	/* changes when a block has come, or none will: what readers sleep on */
	atomic_uint asked;	/* changes when a block is wanted: what the thread that fills sleeps on */
	unsigned seen;		/* of `asked`, when holes_next() found nothing */
	_Atomic uint64_t have_len;
	atomic_bool is_over, is_hit;
};

static _Atomic(struct holes *) all[HOLES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous;
static bool is_installed;

static bool has(const _Atomic uint64_t *bits, size_t i)
{
	return atomic_load(&bits[i / WORD_BITS]) >> i % WORD_BITS & 1;
}

static void set(_Atomic uint64_t *bits, size_t i)
{
	atomic_fetch_or(&bits[i / WORD_BITS], 1ull << i % WORD_BITS);
}

/* Bare system calls: also made in the handler of a signal. */
static void sleep_on(atomic_uint *word, unsigned was, unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, was, &t, NULL, 0);
}

static void wake(atomic_uint *word)
{
	atomic_fetch_add(word, 1);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void want_block(struct holes *h, size_t i)
{
	if (has(h->have, i) || has(h->wanted, i))
		return;
	set(h->wanted, i);
	wake(&h->asked);
}

/* --- the fault --- */

/* Only async-signal-safe work: atomics and system calls. */
static bool serve_fault(uintptr_t addr)
{
	struct holes *h = NULL;
	for (size_t i = 0; i < HOLES_MAX && !h; i++) {
		h = atomic_load(&all[i]);
		if (h && (addr < (uintptr_t)h->data || addr - (uintptr_t)h->data >= h->len))
			h = NULL;
	}
	if (!h)
		return false;
	size_t block = (addr - (uintptr_t)h->data) / h->block_len;
	for (;;) {
		unsigned news = atomic_load(&h->news);
		if (has(h->have, block))
			return true;
		if (atomic_load(&h->is_over))
			break;
		want_block(h, block);
		sleep_on(&h->news, news, 1000);
	}
	uintptr_t page_len = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)(addr & ~(page_len - 1));
	atomic_store(&h->is_hit, true);
	return mmap(page, page_len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	int was = errno;
	bool is_served = info->si_code == SEGV_ACCERR && serve_fault((uintptr_t)info->si_addr);
	errno = was;
	if (is_served)
		return;
	if (previous.sa_flags & SA_SIGINFO)
		previous.sa_sigaction(sig, info, context);
	else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
		previous.sa_handler(sig);
	else
		sigaction(sig, &previous, NULL); /* the instruction runs again and ends the process */
}

static bool add(struct holes *h)
{
	bool is_added = false;
	pthread_mutex_lock(&lock);
	if (!is_installed) {
		struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
		sigemptyset(&act.sa_mask);
		is_installed = sigaction(SIGSEGV, &act, &previous) == 0;
	}
	for (size_t i = 0; is_installed && i < HOLES_MAX && !is_added; i++) {
		is_added = !atomic_load(&all[i]);
		if (is_added)
			atomic_store(&all[i], h);
	}
	pthread_mutex_unlock(&lock);
	return is_added;
}

struct err *holes_new(int fd, uint64_t len, uint32_t block_len, struct holes **ret)
{
	struct holes *h = len > SIZE_MAX / 2 ? NULL : calloc(1, sizeof(*h));
	if (!h)
		return &err_nomem;
	h->len = len;
	h->block_len = block_len;
	h->block_cnt = (size_t)((len + block_len - 1) / block_len);
	h->have = calloc(h->block_cnt / WORD_BITS + 1, sizeof(*h->have));
	h->wanted = calloc(h->block_cnt / WORD_BITS + 1, sizeof(*h->wanted));
	h->given = calloc(bits_words(h->block_cnt) + 1, sizeof(*h->given));
	struct err *e = h->have && h->wanted && h->given ? NULL : &err_nomem;
	void *p = e ? MAP_FAILED : mmap(NULL, (size_t)len, PROT_NONE, MAP_SHARED, fd, 0);
	if (!e && p == MAP_FAILED)
		e = err_os(errno, "cannot map what is being fetched");
	else if (!e)
		h->data = p;
	if (!e && !add(h))
		e = err_new(ERR_BUDGET, "too many files are being fetched");
	if (e) {
		holes_free(h);
		return e;
	}
	*ret = h;
	return NULL;
}

void holes_free(struct holes *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < HOLES_MAX; i++) {
		struct holes *own = h;
		atomic_compare_exchange_strong(&all[i], &own, NULL);
	}
	if (h->data)
		munmap(h->data, (size_t)h->len);
	free(h->have);
	free(h->wanted);
	free(h->given);
	free(h);
}

const uint8_t *holes_data(const struct holes *h)
{
	return h->data;
}

uint64_t holes_have_len(const struct holes *h)
{
	return atomic_load(&h->have_len);
}

bool holes_is_over(const struct holes *h)
{
	return atomic_load(&h->is_over);
}

bool holes_was_hit(const struct holes *h)
{
	return atomic_load(&h->is_hit);
}

static uint64_t len_of(const struct holes *h, size_t block)
{
	uint64_t left = h->len - (uint64_t)block * h->block_len;
	return left < h->block_len ? left : h->block_len;
}

static bool is_there(const struct holes *h, uint64_t off, uint64_t len)
{
	if (!len || off >= h->len || len > h->len - off)
		return !len;
	for (size_t i = (size_t)(off / h->block_len); i <= (off + len - 1) / h->block_len; i++) {
		if (!has(h->have, i))
			return false;
	}
	return true;
}

void holes_want(struct holes *h, uint64_t off, uint64_t len)
{
	if (off >= h->len || !len)
		return;
	uint64_t last = len > h->len - off ? h->len - 1 : off + len - 1;
	for (size_t i = (size_t)(off / h->block_len); i <= last / h->block_len; i++)
		want_block(h, i);
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool holes_wait(struct holes *h, uint64_t off, uint64_t len, unsigned ms)
{
	uint64_t end = now_ms() + ms;
	holes_want(h, off, len);
	for (;;) {
		unsigned news = atomic_load(&h->news);
		if (is_there(h, off, len))
			return true;
		uint64_t now = now_ms();
		if (atomic_load(&h->is_over) || (ms != UINT_MAX && now >= end))
			return false;
		uint64_t left = ms == UINT_MAX ? 1000 : end - now;
		sleep_on(&h->news, news, (unsigned)(left < 1000 ? left : 1000));
	}
}

/* --- the thread that fills --- */

void holes_fill(struct holes *h, size_t block)
{
	if (block >= h->block_cnt || has(h->have, block) || atomic_load(&h->is_over))
		return;
	/* Where that fails (too many pieces) the block stays one that has not come, until all of them have. */
	if (mprotect(h->data + (uint64_t)block * h->block_len, (size_t)len_of(h, block), PROT_READ))
		return;
	set(h->have, block);
	atomic_fetch_add(&h->have_len, len_of(h, block));
	wake(&h->news);
}

void holes_end(struct holes *h, bool is_whole)
{
	if (atomic_load(&h->is_over))
		return;
	if (is_whole && !mprotect(h->data, (size_t)h->len, PROT_READ)) {
		for (size_t i = 0; i < h->block_cnt; i++)
			set(h->have, i);
		atomic_store(&h->have_len, h->len);
	}
	atomic_store(&h->is_over, true);
	wake(&h->news);
}

size_t holes_next(struct holes *h)
{
	unsigned asked = atomic_load(&h->asked);
	if (asked == h->seen)
		return SIZE_MAX;
	for (size_t w = 0; w * WORD_BITS < h->block_cnt; w++) {
		uint64_t open = atomic_load(&h->wanted[w]) & ~atomic_load(&h->have[w]);
		for (; open; open &= open - 1) {
			size_t i = w * WORD_BITS + (size_t)__builtin_ctzll(open);
			if (bits_get(h->given, i))
				continue;
			bits_set(h->given, i);
			return i;
		}
	}
	h->seen = asked;
	return SIZE_MAX;
}

void holes_restart(struct holes *h)
{
	memset(h->given, 0, bits_words(h->block_cnt) * sizeof(*h->given));
	h->seen = atomic_load(&h->asked) - 1;
}

void holes_wake(struct holes *h)
{
	wake(&h->asked);
}

void holes_idle(struct holes *h, unsigned ms)
{
	if (atomic_load(&h->asked) == h->seen)
		sleep_on(&h->asked, h->seen, ms);
}
