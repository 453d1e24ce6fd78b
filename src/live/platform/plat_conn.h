/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_CONN_H
#define LIVE_PLATFORM_PLAT_CONN_H

#include "base/vec.h"
#include "live/gdb/gdb_codec.h"
#include "live/platform/plat.h"
#include "live/platform/plat_inf.h"
#include "live/platform/plat_path.h"
#include "live/tenet/tenet_record.h"

/*
 * One connection: its bytes, what the client said it can do, its open files and its process. Packets are handled one after the other; each has
 * its handler in the table of the file it belongs to. A handler appends the payload of the answer to `out`, in which a packet is open; nothing
 * appended is the empty answer, "not supported".
 */
#define PLAT_PACKET_LEN (1u << 20)     /* PacketSize, bytes */
#define PLAT_REQUEST_MAX (4u << 20)    /* longest request taken, bytes */
#define PLAT_READ_MAX (4u << 20)       /* of a file or of memory with one packet, bytes */
#define PLAT_FILES_MAX 256
#define PLAT_QUEUE_MAX (1u << 20)      /* of requests that wait while the program runs, bytes */

struct plat_queued {
	char *payload;
	size_t len;
};

struct plat_conn {
	const struct plat_opts *opts;
	int in_fd, out_fd, signal_fd;   /* in_fd -1: nobody is there, and a program that would run is stopped at once */
	struct gdb_decoder in;
	struct buf req;                 /* the payload being handled */
	struct buf out;                 /* not sent yet */
	struct buf last;                /* in ack mode: the last answer, for when it is asked for again */
	struct buf scratch, packed;     /* of handlers */
	bool is_eof;                    /* the client sends nothing more */
	bool is_over;                   /* nothing more is served */
	bool is_gone;                   /* the client takes nothing more */
	bool is_noack;
	/* What the client is. */
	bool is_lldb, is_scry, has_said;   /* it sent what only LLDB does; says that it is ours; sent a qSupported */
	bool has_multiprocess, has_suffix, lists_threads, has_binary_upload, has_swbreak, has_exec_events;
	bool has_error_strings, is_extended, had_program;
	struct plat_root root;
	int files[PLAT_FILES_MAX];      /* descriptors by the client's number - PLAT_FILE_FIRST, -1 free */
	/* Processes. */
	struct plat_inf inf;
	pid_t g_tid, c_tid;             /* of Hg and Hc; 0 any, -1 all */
	VEC(char *) env;                /* NAME=VALUE, or NAME for taking it out */
	char *stdio[3];
	bool has_aslr;
	VEC(pid_t) listed;              /* of qfProcessInfo */
	size_t listed_idx;
	struct buf list_filter;
	VEC(struct plat_queued) queue;
	size_t queue_idx, queue_len;
	struct buf maps;                /* /proc/PID/maps of generation maps_at */
	uint64_t maps_at;
	struct buf object;              /* of qXfer, from its first piece on */
	char object_name[64];
	uint64_t object_at;
	struct tenet_record *log;       /* of vScryLog; null: none was begun */
};

#define PLAT_FILE_FIRST 3

enum plat_packet_flags {
	PLAT_PREFIX = 1, /* more follows the name */
	PLAT_RUN = 2,    /* needs opts.allow_run */
	PLAT_WRITE = 4,  /* needs opts.allow_write */
	PLAT_RAW = 8,    /* makes its own packets */
	PLAT_PROCESS = 16, /* needs a process that has not ended */
	PLAT_WHOLE = 32, /* the handler gets the name, too */
	PLAT_ASKS = 64,  /* asks for a process: what the server was told to run is there then */
};

struct plat_packet {
	const char *name;
	void (*run)(struct plat_conn *c, struct gdb_span args);
	unsigned flags;
};

/* The tables, ended by a null name. */
extern const struct plat_packet plat_file_packets[], plat_host_packets[], plat_proc_packets[], plat_setup_packets[], plat_state_packets[],
	plat_run_packets[];

/* `in_fd`, `out_fd` are borrowed; signal_fd tells of SIGCHLD (-1: none). 0 or -errno of the root. */
int plat_conn_init(struct plat_conn *c, const struct plat_opts *opts, int in_fd, int out_fd, int signal_fd);
void plat_conn_fini(struct plat_conn *c);

/* Takes what came and handles all that is whole. */
void plat_conn_feed(struct plat_conn *c, const void *bytes, size_t len);
void plat_conn_handle(struct plat_conn *c);
/* Serves until the end. */
void plat_conn_run(struct plat_conn *c);
/* Sends all there is; false when the client is gone. */
bool plat_conn_flush(struct plat_conn *c);
/* Reads what is there, at most some; false at the end. */
bool plat_conn_read(struct plat_conn *c);

/* --- answers --- */
static inline void plat_ok(struct plat_conn *c)
{
	buf_add_str(&c->out, "OK");
}

/* `Exx`, with its text for clients that asked for texts. */
void plat_error(struct plat_conn *c, unsigned code, const char *text);
/* The same of an errno. */
void plat_errno(struct plat_conn *c, int os_errno);
void plat_put_hextext(struct buf *out, const char *text);
/* Hex that spells a name without a NUL; false when it does not. */
bool plat_text(struct gdb_span hex, char *ret, size_t cap);

/* --- between the files --- */
/* How a running program's client is heard: interrupts and input are taken, all else waits. Returns when the program stopped or the client is gone. */
void plat_wait_stop(struct plat_conn *c);
/* vScryLog (plat_log.c). */
void plat_do_log(struct plat_conn *c, struct gdb_span args);
/* Sends what the program printed as `O` packets. */
void plat_forward_output(struct plat_conn *c);
/* Appends the payload of a stop reply. */
void plat_put_stop(struct plat_conn *c, struct plat_thread *t);
/* Launches what the server was started with, once. */
void plat_launch_given(struct plat_conn *c);
/* The reason of a thread's stop as LLDB names it; null: none. */
const char *plat_reason_name(const struct plat_thread *t);
/* The number the client knows a signal by, and back. */
int plat_signal_out(const struct plat_conn *c, int sig);
int plat_signal_in(const struct plat_conn *c, int sig);
void plat_put_thread_id(struct plat_conn *c, struct buf *out, pid_t tid);
/* "p1.2", "1", "-1", "0"; *ret_tid -1 all, 0 any. */
bool plat_take_thread_id(struct gdb_span *s, pid_t *ret_tid);
/* Takes ";thread:ID;" from the end of `args`; the thread a packet means, or null. */
struct plat_thread *plat_packet_thread(struct plat_conn *c, struct gdb_span *args);

/* A build-id and what else is asked of a module. */
struct plat_module {
	char uuid[129];        /* upper-case hex */
	char path[PATH_MAX];
	const char *arch;      /* "x86_64" */
	uint64_t len;          /* bytes of the file */
};
/* `triple` may be empty. -errno; -ENOEXEC for what is no ELF, or of another machine. */
int plat_module_read(struct plat_root *root, const char *path, struct gdb_span triple, struct plat_module *ret);

#endif
