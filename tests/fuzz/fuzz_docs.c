/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents that operations take: the first byte chooses edit, rename --from, import or multi, the rest is the document, handed
 * over as a file. It is made for real, in a store of the fuzzer's own; afterwards the journal must agree with itself, and
 * what was written must be what export gives and import takes again without a change.
 */
#include "fuzz.h"

#include "session/ops.h"
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ses *session;
static char root[64];

static void drop_store(void)
{
	char cmd[128];
	ses_close(session);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	FILE *p = popen(cmd, "r");
	if (p)
		pclose(p);
}

static void start(void)
{
	struct ses_opts opts = {.threads = 1};
	snprintf(root, sizeof(root), "%s/scry-fuzz.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(root) || setenv("SCRY_STORE", root, 1) || ses_open("/bin/true", &opts, &session))
		abort();
	atexit(drop_store);
}

/* Runs the operation with a document; the answer's error or status, null when all of it was done. */
static struct err *run(const char *name, const char *param, const char *path, struct buf *out)
{
	const struct ops_op *op = ops_find(name);
	struct arena a = {0};
	struct ops_args args;
	struct ops_out o;
	struct ses_call call = {.caps = ~(uint32_t)0};
	ops_args_init(&args, op, &a);
	struct err *e = param ? ops_args_set(&args, ops_param_find(op, param, strlen(param)), path) : NULL;
	if (!e && !strcmp(name, "import"))
		e = ops_args_set(&args, ops_param_find(op, "any_target", 10), NULL);
	if (!e && !strcmp(name, "export"))
		e = ops_args_set(&args, ops_param_find(op, "format", 6), "json");
	ops_out_init(&o, op, out, strcmp(name, "export") != 0);
	struct ops_req rq = {.sn = ses_snap_get(session), .call = &call, .args = &args, .arena = &a, .out = &o};
	if (!e)
		e = ops_run(&rq);
	if (!e)
		e = take_ptr(o.status);
	ses_snap_put(rq.sn);
	ops_out_fini(&o);
	arena_fini(&a);
	return e;
}

static int document(const void *bytes, size_t len, char path[64])
{
	int fd = memfd_create("doc", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET))
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* What stands, exported and imported where it stands, changes nothing and is refused nowhere. */
static void check_again(void)
{
	struct buf faults = {0}, text = {0}, answer = {0};
	char path[64];
	if (ses_check_edits(session, &faults) || faults.len)
		abort();
	if (run("export", NULL, NULL, &text))
		abort();
	int fd = document(text.data, text.len, path);
	if (run("import", "from", path, &answer) || !memmem(answer.data, answer.len, "\"applied\":0", 11))
		abort();
	close(fd);
	buf_fini(&faults);
	buf_fini(&text);
	buf_fini(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct { const char *op, *param; } ops[] = {{"edit", "ops"}, {"rename", "from"}, {"import", "from"}, {"multi", "ops"}};
	static unsigned runs;
	struct buf out = {0};
	char path[64];
	if (!len)
		return 0;
	if (!session)
		start();
	unsigned which = bytes[0] % ARRAY_LEN(ops);
	int fd = document(bytes + 1, len - 1, path);
	struct err *e = run(ops[which].op, ops[which].param, path, &out);
	close(fd);
	if (e && (e->kind == ERR_INTERNAL || e->kind == ERR_IO || e->kind == ERR_NOMEM))
		abort();
	if (e)
		fuzz_rejected++;
	else
		fuzz_accepted++;
	err_free(e);
	buf_fini(&out);
	if (++runs % 64 == 0)
		check_again();
	return 0;
}
