/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows what it calls: run as `subject MODE` it says on stdout what a probe must show, a call a line, without times and
 * callers. Every function called is marked so that compilers neither inline nor change it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLED __attribute__((noipa, noinline))

enum color { RED, GREEN, BLUE = 7 };
struct point { int x, y; };
struct shape { const char *name; struct point at; enum color color; unsigned filled : 1, layers : 5; char tag[8]; double area; };

volatile long sink;

CALLED long mix(char c, short s, int i, long l, unsigned u, _Bool b, signed char seventh, unsigned short eighth)
{
	return sink = c + s + i + l + (long)u + b + seventh + eighth;
}

CALLED const char *greet(const char *name, int times)
{
	sink = times;
	return times > 2 ? "enough" : times ? name : NULL;
}

CALLED int paint(const struct shape *s, enum color with)
{
	sink = with;
	return s ? s->at.x : -1;
}

CALLED double scale(double by, int n, float f)
{
	return by * n + (double)f;
}

CALLED void nothing(void)
{
	sink++;
}

CALLED struct point place(struct point p, int n)
{
	p.x += n;
	return p;
}

CALLED int deep(int n)
{
	return n ? deep(n - 1) + 1 : 0;
}

CALLED int count(int n)
{
	sink += n;
	return n * 2;
}

CALLED int tail_end(int n)
{
	return n + 1;
}

CALLED int tail(int n)
{
	__asm__ volatile("");
	return tail_end(n + 10);
}

static jmp_buf back;

CALLED int jumps(int n)
{
	if (n & 1)
		longjmp(back, n);
	return n;
}

CALLED int lines(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += count(i); /* LINE */
	return sum;
}

static void values(void)
{
	struct shape s = {"box", {3, -4}, BLUE, 1, 17, "tag", 2.5};
	mix('x', -2, -3, -4, 5, 1, -7, 65535);
	puts("mix(c='x', s=-2, i=-3, l=-4, u=5, b=true, seventh=-7, eighth=65535) = 65645");
	greet("you", 1);
	puts("greet(name=\"you\", times=1) = \"you\"");
	greet("a \"b\"\n", 0);
	puts("greet(name=\"a \\\"b\\\"\\n\", times=0) = NULL");
	greet(NULL, 3);
	puts("greet(name=NULL, times=3) = \"enough\"");
	paint(&s, GREEN);
	puts("paint(s={.name=0xADDR, .at={.x=3, .y=-4}, .color=BLUE, .filled=1, .layers=17, .tag=\"tag\", .area=2.5}, with=GREEN) = 3");
	paint(NULL, (enum color)5);
	puts("paint(s=NULL, with=5) = -1");
	scale(1.5, 4, 2);
	puts("scale(by=?, n=4, f=?) = ?");
	nothing();
	puts("nothing()");
	place((struct point){1, 2}, 9);
	puts("place(p={.x=1, .y=2}, n=9) = ?");
	printf("tail_end(n=15) = 16\ntail(n=5) = 16\n");
	tail(5);
}

static void faults(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), name[] = "/tmp/scry-subject-XXXXXX", *cold;
	int fd = mkstemp(name);
	munmap(p + page, page);
	greet((const char *)8, 0);
	puts("greet(name=0x8(unreadable), times=0) = NULL");
	memcpy(p + page - 4, "ends", 4);
	greet(p + page - 4, 0);
	puts("greet(name=0xADDR(unreadable), times=0) = NULL");
	memcpy(p + page - 4, "fit", 4);
	greet(p + page - 4, 0);
	puts("greet(name=\"fit\", times=0) = NULL");
	char big[200];
	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	greet(big, 0);
	printf("greet(name=\"%.128s\"..., times=0) = NULL\n", big);
	/* A page that nobody has touched yet. */
	unlink(name);
	if (write(fd, "cold", 5) != 5)
		return;
	cold = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	greet(cold, 0);
	puts("greet(name=\"cold\", times=0) = NULL");
}

static void *thread(void *arg)
{
	for (int i = 0; i < 1000; i++)
		count((int)(intptr_t)arg);
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, (void *)(intptr_t)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void far_jumps(void)
{
	for (volatile int i = 0; i < 20; i++) {
		if (!setjmp(back))
			jumps(i);
	}
	count(1);
}

static void forks(void)
{
	count(1);
	if (!fork()) {
		count(2);
		_exit(0);
	}
	wait(NULL);
	count(3);
}

/* Until there is something to read: a byte of count() as it is in memory at each line read. */
static void serve(void)
{
	char line[16];
	setvbuf(stdout, NULL, _IONBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 100; i++)
			count(i);
		printf("%02x\n", *(const volatile unsigned char *)(uintptr_t)count);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	if (!strcmp(mode, "values"))
		values();
	else if (!strcmp(mode, "faults"))
		faults();
	else if (!strcmp(mode, "threads"))
		threads();
	else if (!strcmp(mode, "jumps"))
		far_jumps();
	else if (!strcmp(mode, "forks"))
		forks();
	else if (!strcmp(mode, "serve"))
		serve();
	else if (!strcmp(mode, "deep"))
		printf("%d\n", deep(100));
	else if (!strcmp(mode, "lines"))
		printf("%d\n", lines(25));
	else if (!strcmp(mode, "many"))
		for (int i = 0; i < 20000; i++)
			count(i);
	else if (!strcmp(mode, "exec")) {
		count(1);
		execl(argv[2], argv[2], "lines", NULL);
	} else if (!strcmp(mode, "conditions")) {
		for (int i = -10; i < 10; i++) {
			count(i);
			greet(i & 1 ? "odd" : "even", i);
		}
	} else if (!strcmp(mode, "status"))
		return 42;
	return 0;
}
