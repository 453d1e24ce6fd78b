/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A header file as text that the parser of declarations takes: the machine's preprocessor runs on it, locked in. It keeps its line
 * markers, so that what is wrong is said with the line of the file it is in.
 */
#include "session/ses_types.h"

#include "base/child_tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_ARGS_MAX 64
#define HEADER_CPU_S 30
#define HEADER_WALL_MS 60000
/* A preprocessor needs little, and takes what it may for a header that does not end. */
#define HEADER_MEM_MAX ((uint64_t)1 << 30)

struct command {
	const char *argv[HEADER_ARGS_MAX + 1];
	size_t cnt;
};

static void add(struct command *c, const char *arg)
{
	if (c->cnt < HEADER_ARGS_MAX)
		c->argv[c->cnt++] = arg;
}

static bool is_there(struct arena *a, const char *program)
{
	const char *path = arena_printf(a, "/usr/bin/%s", program);
	return path && !access(path, X_OK);
}

static const char *machine_of(enum arch_id id)
{
	return id == ARCH_ID_A64 ? "aarch64-linux-gnu" : id == ARCH_ID_I386 ? "i686-linux-gnu" : "x86_64-linux-gnu";
}

const char *ses_header_triple(struct ses_snap *sn, const struct ses_header *h, struct arena *a)
{
	const char *triple = h->target ? h->target : machine_of(sn->arch ? sn->arch->id : ARCH_ID_NONE);
	return arena_strndup(a, triple, strlen(triple));
}

/* The compiler for the target's machine, or for the triple that was asked for. */
static void add_compiler(struct command *c, struct ses_snap *sn, const char *triple, struct arena *a)
{
	enum arch_id id = sn->arch ? sn->arch->id : ARCH_ID_NONE;
#if defined(__aarch64__)
	bool is_own = id == ARCH_ID_A64;
#else
	bool is_own = id == ARCH_ID_X86_64;
#endif
	const char *machine = machine_of(id);
	if (!triple && is_own) {
		add(c, "cc");
		return;
	}
	const char *gcc = arena_printf(a, "%s-gcc", triple ? triple : machine);
	if (gcc && is_there(a, gcc)) {
		add(c, gcc);
		return;
	}
	if (!triple && id == ARCH_ID_I386 && !is_there(a, "clang")) {
		add(c, "cc");
		add(c, "-m32");
		return;
	}
	add(c, "clang");
	add(c, arena_printf(a, "--target=%s", triple ? triple : machine));
}

/* The first line that says what is wrong: "X.h:3:10: fatal error: y.h: No such file or directory"; else the first that says anything. */
static struct err *header_error(const char *path, const struct buf *said, int status)
{
	const char *first = "", *end = said->data ? said->data + said->len : NULL;
	size_t first_len = 0;
	for (const char *s = said->data, *nl; s && s < end; s = nl + 1) {
		nl = memchr(s, '\n', (size_t)(end - s));
		nl = nl ? nl : end - 1;
		size_t len = (size_t)(nl - s);
		const char *at = memmem(s, len, "error: ", 7);
		if (at) {
			size_t head = (size_t)(at - s);
			head -= head > 6 && !memcmp(at - 6, "fatal ", 6) ? 6 : 0;
			return err_new(ERR_INVALID, "%.*s%.*s", (int)MIN(head, 400), s, (int)MIN(len - (size_t)(at + 7 - s), 400), at + 7);
		}
		first = first_len ? first : s;
		first_len = first_len ? first_len : len;
	}
	return err_new(ERR_INVALID, "%s: the preprocessor failed with status %d%s%.*s", path, status, first_len ? ": " : "",
		       (int)MIN(first_len, 400), first);
}

struct err *ses_header_read(struct ses_snap *sn, const struct ses_header *h, struct arena *a, struct buf *ret)
{
	struct command c = {.cnt = 0};
	_cleanup_buf_ struct buf said = {0};
	int status = 0;
	struct stat st;
	if (stat(h->path, &st) || access(h->path, R_OK))
		return err_os(errno, "%s", h->path);
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_BAD_INPUT, "%s: is not a regular file", h->path);
	add_compiler(&c, sn, h->target, a);
	add(&c, "-E");
	add(&c, "-xc");
	add(&c, "-std=gnu11");
	/* Nobody reads warnings, and of a file with many zero bytes they take minutes. */
	add(&c, "-w");
	for (size_t i = 0; i < h->folder_cnt; i++)
		add(&c, arena_printf(a, "-I%s", h->folders[i]));
	for (size_t i = 0; i < h->macro_cnt; i++)
		add(&c, arena_printf(a, "-D%s", h->macros[i]));
	/* A name that begins with a dash is no option. */
	add(&c, h->path[0] == '-' ? arena_printf(a, "./%s", h->path) : h->path);
	for (size_t i = 0; i < c.cnt; i++) {
		if (!c.argv[i])
			return &err_nomem;
	}
	if (c.cnt == HEADER_ARGS_MAX)
		return err_new(ERR_INVALID, "%s: too many folders and macros", h->path);
	struct child_tool tool = {.argv = c.argv, .max_out_len = TYPES_TEXT_MAX, .cpu_s = HEADER_CPU_S, .wall_ms = HEADER_WALL_MS,
				  .max_mem_len = HEADER_MEM_MAX, .wants_files = true};
	struct err *e = child_tool_run(&tool, ret, &said, &status);
	if (e && e->kind == ERR_ENV)
		return err_fix(e, "apt install %s", !strcmp(c.argv[0], "clang") ? "clang" : "gcc");
	if (e)
		return err_prefix(e, "%s", h->path);
	return status ? header_error(h->path, &said, status) : NULL;
}
