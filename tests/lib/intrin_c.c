/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/intrin_c.h"

#include "cprint/cprint.h"
#include "lift/lift_int.h"
#include "scry.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void c_fn(struct scry_x86_64 *m);

struct intrin_c {
	char dir[32];
	struct buf text;
	int cnt, built, cap, files;
	c_fn **fns;
};

struct intrin_c *intrin_c_new(void)
{
	struct intrin_c *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	snprintf(c->dir, sizeof(c->dir), "/tmp/scry-intrin-XXXXXX");
	if (!mkdtemp(c->dir)) {
		free(c);
		return NULL;
	}
	return c;
}

static int run(char *const argv[])
{
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	int status = -1;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

void intrin_c_free(struct intrin_c *c)
{
	if (!c)
		return;
	const char *const argv[] = {"rm", "-rf", c->dir, NULL};
	run((char *const *)argv);
	buf_fini(&c->text);
	free(c->fns);
	free(c);
}

int intrin_c_add(struct intrin_c *c, const struct ir_func *f)
{
	char name[24];
	snprintf(name, sizeof(name), "insn_%d", c->cnt);
	/* What comes behind the instruction is the caller's. */
	if (!c->text.len)
		buf_add_str(&c->text, "#include \"scry.h\"\n#define scry_leave(m, to) ((m)->pc = (to))\n");
	const struct cprint_opts opts = {.name = name};
	struct err *e = cprint_func(f, &opts, &c->text, NULL);
	if (e) {
		err_free(e);
		return -1;
	}
	return c->cnt++;
}

bool intrin_c_build(struct intrin_c *c)
{
	char src[64], so[64];
	if (c->built == c->cnt)
		return true;
	snprintf(src, sizeof(src), "%s/%d.c", c->dir, c->files);
	snprintf(so, sizeof(so), "%s/%d.so", c->dir, c->files++);
	FILE *out = fopen(src, "w");
	if (!out || fwrite(c->text.data, 1, c->text.len, out) != c->text.len || fclose(out))
		return false;
	c->text.len = 0;
	const char *const argv[] = {"gcc", "-O0", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-shared", "-fPIC",
				    "-I", SCRY_INCLUDE, "-o", so, src, NULL};
	void *lib = run((char *const *)argv) ? NULL : dlopen(so, RTLD_NOW | RTLD_LOCAL);
	if (c->cnt > c->cap) {
		c_fn **bigger = realloc(c->fns, (size_t)c->cnt * 2 * sizeof(*bigger));
		if (!bigger)
			return false;
		c->fns = bigger;
		c->cap = c->cnt * 2;
	}
	for (; lib && c->built < c->cnt; c->built++) {
		char name[24];
		snprintf(name, sizeof(name), "insn_%d", c->built);
		*(void **)&c->fns[c->built] = dlsym(lib, name);
		if (!c->fns[c->built])
			return false;
	}
	return lib != NULL;
}

/* Where a location is in the state, and its bytes. */
static void *field(struct scry_x86_64 *m, unsigned loc, size_t *ret_len)
{
	static const struct {
		unsigned first, cnt;
		size_t off, len, step;
	} rows[] = {
#define ROW(loc, cnt, name, len) {loc, cnt, offsetof(struct scry_x86_64, name), len, sizeof(((struct scry_x86_64 *)0)->name)}
		ROW(LIFT_AX, 8, rax, 8),	 ROW(LIFT_R8, 8, r8, 8),       ROW(LIFT_CF, 7, cf, 1),
		ROW(LIFT_FSBASE, 2, fsbase, 8),	 ROW(LIFT_ES, 6, es, 2),       ROW(LIFT_MXCSR, 1, mxcsr, 4),
		ROW(LIFT_FCW, 2, fcw, 2),	 ROW(LIFT_XMM0, 8, xmm0, 16),  ROW(LIFT_XMM8, 8, xmm8, 16),
		ROW(LIFT_YMMH0, 8, ymmh0, 16),	 ROW(LIFT_YMMH8, 8, ymmh8, 16), ROW(LIFT_ZMMH0, 8, zmmh0, 32),
		ROW(LIFT_ZMMH8, 8, zmmh8, 32),	 ROW(LIFT_F0, 8, f0, 10),      ROW(LIFT_MM0, 8, mm0, 8),
		ROW(LIFT_K0, 8, k0, 8),		 ROW(LIFT_ZMM16, 16, zmm16, 64),
#undef ROW
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (loc < rows[i].first || loc >= rows[i].first + rows[i].cnt)
			continue;
		*ret_len = rows[i].len;
		return (uint8_t *)m + rows[i].off + (loc - rows[i].first) * rows[i].step;
	}
	fprintf(stderr, "no field for location %u\n", loc);
	abort();
}

/* Anything, but of the right form. */
static void poison(struct scry_x86_64 *m)
{
	static uint64_t s = 0x2545f4914f6cdd1d;
	uint64_t *words = (uint64_t *)m;
	for (size_t i = 0; i < sizeof(*m) / 8; i++) {
		s ^= s << 13;
		s ^= s >> 7;
		s ^= s << 17;
		words[i] = s;
	}
	for (unsigned i = 0; i < 7; i++)
		(&m->cf)[i] &= 1;
	m->fcw = 0x37f;
	m->mxcsr = 0x1f80;
	m->fsw &= 0x4700;
	m->df = 0;
	m->image = 0;
	for (unsigned i = 0; i < 8; i++) {
		long double v = (long double)(&m->mm0)[i];
		(&m->f0)[i] = 0;
		memcpy(&(&m->f0)[i], &v, 10);
	}
}

bool intrin_c_run(const struct intrin_c *c, int fn, const struct ir_machine *machine, const struct ir_intrin *in,
		  const struct ir_val *args, struct ir_val *out)
{
	static struct scry_x86_64 m;
	size_t len;
	(void)machine;
	if (fn < 0 || fn >= c->built)
		return false;
	poison(&m);
	for (unsigned i = 0; i < in->in_cnt; i++) {
		void *to = field(&m, in->in[i], &len);
		memcpy(to, args[i].w, len);
	}
	c->fns[fn](&m);
	for (unsigned i = 0; i < in->out_cnt; i++) {
		const void *from = field(&m, in->out[i], &len);
		memcpy(out[i].w, from, len);
	}
	return true;
}
