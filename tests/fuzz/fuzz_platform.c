/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients send to the platform server: packets one after the other, with files below a folder and a stopped process that may do nothing but
 * read, write and exit. The first byte says who the client claims to be; lines behind it are payloads, or with its highest bit all is
 * the raw stream. Beyond not crashing: each packet has one answer, whose checksum is good.
 */
#include "fuzz.h"

#include "live/platform/plat_conn.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/scry-fuzz-platform-XXXXXX";
static pid_t subject;
static int unused_fd = -1;

static void put_file(const char *name, const char *text, size_t len)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(text, 1, len, f) != len || fclose(f))
		abort();
}

/* What a mutant made goes, too. */
static void clean(void)
{
	char command[128];
	if (subject > 0)
		kill(subject, SIGKILL);
	snprintf(command, sizeof(command), "/bin/rm -rf %s", folder);
	pid_t pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static void start(void)
{
	sigset_t set;
	if (!mkdtemp(folder) || atexit(clean))
		abort();
	/* What leads out of the folder is not followed; and as it is the root, the server changes nothing else. */
	put_file("a", "some #$}* text", 14);
	static const char elf[] = "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\x3e\0\1\0\0\0";
	put_file("elf", elf, sizeof(elf) - 1);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* A process that the packets are about: whatever its registers and its memory become, it has four system calls, and nothing to write to but a
 * pipe that nobody reads. */
static void need_subject(void)
{
	int never[2], ready[2];
	char ch = 0;
	if (subject > 0 && kill(subject, 0) == 0 && waitpid(subject, NULL, WNOHANG) == 0)
		return;
	if (pipe2(never, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
		abort();
	subject = fork();
	if (!subject) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(never[0], 0);
		(void)dup2(ready[1], 1);
		close_range(2, ~0u, 0);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		(void)!write(1, &ch, 1);
		for (;;)
			(void)!read(0, &ch, 1);
	}
	close(never[0]);
	close(ready[1]);
	/* It is locked in before anything is done to it. */
	if (read(ready[0], &ch, 1) != 1)
		abort();
	close(ready[0]);
	close(unused_fd);
	unused_fd = never[1]; /* so that it waits */
}

/* One whole packet with a good checksum, or none. */
static void check_answer(struct plat_conn *c, bool wants_one)
{
	struct gdb_decoder d = {0};
	struct gdb_packet p;
	uint8_t *to = gdb_decoder_room(&d, c->out.len + 1);
	unsigned cnt = 0;
	if (!to || c->out.failed)
		abort();
	if (c->out.len)
		memcpy(to, c->out.data, c->out.len);
	gdb_decoder_filled(&d, c->out.len);
	for (enum gdb_item item = gdb_decoder_next(&d, &p); item != GDB_MORE; item = gdb_decoder_next(&d, &p)) {
		if (item == GDB_BAD_SUM || item == GDB_TOO_LONG)
			abort();
		if (item != GDB_PACKET)
			continue;
		cnt++;
		bool is_refused = !p.raw_len || p.raw[0] == 'E' || (p.raw_len > 2 && !memcmp(p.raw, "F-1", 3));
		fuzz_accepted += !is_refused;
		fuzz_rejected += is_refused;
	}
	if (d.pos != d.in.len || (wants_one && cnt != 1))
		abort();
	gdb_decoder_fini(&d);
	c->out.len = 0;
}

static void send_packet(struct plat_conn *c, const uint8_t *payload, size_t len)
{
	struct buf packet = {0};
	size_t at = gdb_begin(&packet);
	buf_add(&packet, payload, len);
	gdb_end(&packet, at);
	/* A mark of the protocol inside makes more packets of it, or none. */
	bool is_one = !memchr(payload, '#', len) && !memchr(payload, '$', len);
	plat_conn_feed(c, packet.data, packet.len);
	plat_conn_handle(c);
	check_answer(c, is_one && !c->is_over && !(len == 1 && payload[0] == 'k'));
	buf_fini(&packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct plat_opts opts = {.root = folder, .allow_write = true};
	struct plat_conn c;
	if (!len || len > 65536)
		return 0;
	if (!strcmp(folder + sizeof(folder) - 7, "XXXXXX"))
		start();
	if (plat_conn_init(&c, &opts, -1, -1, -1))
		abort();
	uint8_t how = bytes[0];
	c.is_noack = c.in.is_noack = how & 1;
	c.is_lldb = c.has_suffix = how & 2;
	c.has_multiprocess = how & 4;
	c.lists_threads = how & 8;
	c.has_said = c.has_swbreak = how & 16;
	if (how & 32) {
		/* What an input before this one did to it may kill it at any time; then the packets find no process. */
		need_subject();
		(void)plat_inf_attach(&c.inf, subject);
	}
	if (how & 128) {
		plat_conn_feed(&c, bytes + 1, len - 1);
		plat_conn_handle(&c);
		check_answer(&c, false);
	}
	for (size_t at = 1; !(how & 128) && at < len && !c.is_over;) {
		const uint8_t *end = memchr(bytes + at, '\n', len - at);
		size_t n = end ? (size_t)(end - bytes) - at : len - at;
		send_packet(&c, bytes + at, n);
		at += n + 1;
	}
	plat_conn_fini(&c);
	return 0;
}
