/* SPDX-License-Identifier: Apache-2.0 */
/* What tests/e2e/debug.py debugs; it finds lines by the words behind them. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int counter;
volatile int go_on;
char text[32] = "as it was";

static int compute(int n)
{
	int sum = 0;                     /* compute-1 */
	for (int i = 0; i < n; i++)      /* compute-loop */
		sum += i * counter;      /* compute-body */
	return sum;                      /* compute-end */
}

int recurse(int n)
{
	if (n == 0)                      /* recurse-1 */
		return 0;                /* recurse-0 */
	int below = recurse(n - 1);      /* recurse-call */
	return below + n;                /* recurse-end */
}

static int twice(int n)
{
	return 2 * n;                    /* twice-1 */
}

static void on_signal(int sig)
{
	printf("signal %d\n", sig);      /* handler-1 */
}

static void *worker(void *arg)
{
	volatile int local = *(int *)arg; /* worker-1 */
	return (void *)(long)(local + 1);
}

int main(int argc, char **argv)
{
	int (*indirect)(int) = argc > 100 ? compute : twice; /* main-1 */
	counter = argc;                  /* main-counter */
	int a = compute(5);              /* main-compute */
	printf("a=%d\n", a);             /* main-print */
	counter = 7;                     /* main-seven */
	int b = recurse(4);              /* main-recurse */
	int c = indirect(b);             /* main-indirect */
	printf("b=%d c=%d %s %s\n", b, c, argc > 1 ? argv[1] : "-", text); /* main-print2 */
	if (argc > 1 && !strcmp(argv[1], "signal")) {
		struct sigaction sa = {.sa_handler = on_signal};
		sigaction(SIGUSR1, &sa, NULL);
		raise(SIGUSR1);          /* main-raise */
	}
	if (argc > 1 && !strcmp(argv[1], "crash"))
		*(volatile int *)8 = 1;  /* main-crash */
	if (argc > 1 && !strcmp(argv[1], "thread")) {
		pthread_t t;
		void *ret;
		pthread_create(&t, NULL, worker, &counter);
		pthread_join(t, &ret);
		printf("thread %ld\n", (long)ret);
	}
	if (argc > 2 && !strcmp(argv[1], "load")) {
		void *library = dlopen(argv[2], RTLD_NOW);
		int (*late)(int) = library ? (int (*)(int))dlsym(library, "late_work") : NULL;
		printf("late %d\n", late ? late(20) : -1); /* main-late */
	}
	if (argc > 1 && !strcmp(argv[1], "spin")) {
		alarm(100);
		printf("spinning\n");
		fflush(stdout);
		while (!go_on)           /* main-spin */
			;
	}
	return b;                        /* main-end */
}
