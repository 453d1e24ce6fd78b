/* SPDX-License-Identifier: Apache-2.0 */
/* What debuggers are tested on: a mode is the first word. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef OWN_LIBRARY
int own_call(int x);
#endif
volatile int counter;
volatile char buffer[16];
static volatile int is_ready;

__attribute__((noinline)) int work(int x)
{
	counter += x;
	return counter * 2;
}

static void *thread_main(void *arg)
{
	__sync_fetch_and_add(&is_ready, 1);
	for (int i = 0; i < 50; i++)
		work(1);
	return arg;
}

static int threads(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread_main, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("sum %d\n", counter);
	return 4;
}

static void on_signal(int sig)
{
	counter = sig;
}

static int take_signals(void)
{
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
	raise(SIGUSR1);
	printf("signal %d\n", counter);
	fflush(stdout);
	raise(SIGSEGV);
	return 0;
}

static int forks(int uses_vfork)
{
	int status = 0;
	pid_t pid = uses_vfork ? vfork() : fork();
	if (!pid) {
		if (uses_vfork)
			execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
		else
			work(5);
		_exit(5);
	}
	waitpid(pid, &status, 0);
	work(1);
	printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	char line[64] = "";
	if (!strcmp(mode, "threads"))
		return threads();
	if (!strcmp(mode, "signals"))
		return take_signals();
	if (!strcmp(mode, "fork") || !strcmp(mode, "vfork"))
		return forks(mode[0] == 'v');
	if (!strcmp(mode, "exec"))
		execl("/proc/self/exe", "debuggee", "after", (char *)NULL);
	if (!strcmp(mode, "read") && fgets(line, sizeof(line), stdin))
		printf("got %s", line);
	if (!strcmp(mode, "spin"))
		for (;;)
			counter++;
	if (!strcmp(mode, "env"))
		printf("%s %s\n", getenv("SCRY_A"), getenv("HOME") ? "home" : "none");
	printf("hello %d %s\n", argc, mode);
#ifdef OWN_LIBRARY
	counter += own_call(1);
	counter = 0;
#endif
	for (int i = 0; i < 3; i++)
		work(i);
	buffer[3] = 'x';
	return 7;
}
