/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_DEBUG_INT_H
#define SESSION_SES_DEBUG_INT_H

#include "base/file.h"
#include "live/debug/debug.h"
#include "live/platform/plat.h"
#include "session/ses_debug.h"
#include "session/ses_int.h"

#include <stdio.h>

struct debug_symbol { uint64_t va, len; const char *name; uint32_t name_len; };

/* An object of the running target whose file is at hand here. */
struct debug_object {
	char *path;
	uint64_t base;         /* what is added to the file's addresses */
	struct file *file;     /* null: none here, or not the same */
	struct fmt_bin *bin;
	struct debug_symbol *symbols; /* functions, by address */
	uint32_t symbol_cnt;
};

/* A breakpoint as a person set it; it may be placed in the target or wait for one. */
struct debug_want {
	uint32_t id;
	char *what, *cond;     /* cond null: always */
	bool is_temp, is_off, has_va;
	bool is_unjudged;      /* its condition could not be judged when it was hit */
	uint64_t va;           /* of the database */
	uint32_t placed;       /* of the target, 0: not */
	uint8_t kind;
	uint32_t len;
	uint64_t was, is;      /* of a watchpoint: what was there when it was last hit, and before */
};

#define SES_DEBUG_FRAMES 128

struct ses_debug {
	struct debug *d;
	struct debug *platform; /* the server that started the one that `d` speaks to; null: none did */
	struct debug_opts opts; /* how `d` was opened; the link is taken */
	struct ses *ses;       /* null: there is no database */
	struct ses *own_ses;   /* the one that was opened here, else null */
	char *where;           /* the server's URL, null: we are it */
	char *remote_path;     /* of the program there, null: it is a file of this machine */
	struct ses_remote_opts remote;
	VEC(struct ses_remote_got) got; /* files that came */
	bool has_no_files;     /* the server gives out none */
	struct ses_snap *sn;   /* held; null without a database */
	struct plat_stub stub;
	bool is_ours;          /* the process was started by us: it ends with us */
	char **argv;
	size_t argc;
	char *own_path;        /* of the database's file */
	struct debug_object own;      /* the database's file, for its unwind tables */
	uint64_t slide;        /* live minus database */
	bool has_slide;
	bool is_other;         /* the process runs another program than the database's */
	VEC(struct debug_object) objects;
	bool has_objects;      /* of this stop */
	VEC(struct debug_want) wants;
	uint32_t last_want;
	uint32_t load_break;   /* of the target: where its loader tells of objects; 0 none */
	struct debug_frame frames[SES_DEBUG_FRAMES];
	size_t frame_cnt;
	bool has_frames;       /* of this stop */
	size_t frame_idx;      /* the one that is looked at */
	uint64_t old_regs[DEBUG_REG_MAX]; /* of the stop before */
	bool old_known[DEBUG_REG_MAX];
	char *last_line;       /* what an empty line does again */
	uint64_t shown_live;   /* where the next dump or disassembly goes on */
	uint8_t shown_what;
	int status;
	char *log_path;        /* of the log that is written; null: none is */
	int log_fd;
	uint64_t log_len;      /* bytes written */
	char *log_wanted;      /* one is to begin at the first stop; null: none */
};

static inline struct ses_call ses_debug_call(const struct ses_debug *s)
{
	return (struct ses_call){.cancel = s->d->link.cancel, .caps = SES_CAP_ALL};
}

/* --- ses_debug.c --- */
/* What there is to know of a new stop is not known yet. */
void ses_debug_moved(struct ses_debug *s);
/* Steps that ran: what they show, breakpoints that go, waits that can be placed. */
_must_use_ struct err *ses_debug_after(struct ses_debug *s);
_must_use_ struct err *ses_debug_launch(struct ses_debug *s, const char *const *argv, size_t argc);
_must_use_ struct err *ses_debug_objects(struct ses_debug *s);

/* --- ses_debug_break.c --- */
/* Sets a breakpoint at what a person wrote: a name, an address, FUNC:LINE, FILE:LINE, FUNC:cLINE (of the C). */
_must_use_ struct err *ses_debug_want(struct ses_debug *s, const char *what, const char *cond, uint8_t kind, bool is_temp, uint32_t *ret_id);
_must_use_ struct err *ses_debug_unwant(struct ses_debug *s, uint32_t id);
/* Places what can be placed. *ret_left: how many wait for objects that are not loaded. */
_must_use_ struct err *ses_debug_place_all(struct ses_debug *s, unsigned *ret_left);
void ses_debug_unplace_all(struct ses_debug *s);
/* The loader told of an object: what waits may be in it. */
void ses_debug_loaded(struct ses_debug *s);
/* What a watchpoint has now; 0 when it cannot be read. */
uint64_t ses_debug_watched(struct ses_debug *s, const struct debug_want *w);
struct debug_want *ses_debug_want_of(struct ses_debug *s, uint32_t placed);
void ses_debug_wants_fini(struct ses_debug *s);
/* A place of the running target: what ses_debug_want() takes, or a register or expression behind '$' or '*'. */
_must_use_ struct err *ses_debug_place(struct ses_debug *s, const char *what, uint64_t *ret_live);

/* --- ses_debug_fetch.c --- */
/* Fetches files of the server's machine over its connection, through the cache; locals[i] is where one is here, borrowed, or null. An error
 * is the connection's. */
_must_use_ struct err *ses_debug_fetch(struct ses_debug *s, const char *const *paths, size_t cnt, const char **locals);
/* The program: by the path behind the URL, else by what the server says; opens it. Without one nothing is done. */
_must_use_ struct err *ses_debug_fetch_program(struct ses_debug *s, const char *path, bool no_store);

/* --- ses_debug_platform.c --- */
/* Where the server that was reached is lldb-server's platform, goes on at a server that it starts. */
_must_use_ struct err *ses_debug_hand_over(struct ses_debug *s);
/* A new one, for another process, when the process of the last one is over. */
_must_use_ struct err *ses_debug_again(struct ses_debug *s);
/* Sends the database's file into the working folder there, unless that machine has it at its path here. */
_must_use_ struct err *ses_debug_send_program(struct ses_debug *s);

/* --- ses_debug_log.c --- */
#define SES_DEBUG_LOG_STEPS 10000000
/* From here on what the target does is written to a file, anew; ends another log. */
_must_use_ struct err *ses_debug_log_begin(struct ses_debug *s, const char *path, uint64_t step_max);
_must_use_ struct err *ses_debug_log_end(struct ses_debug *s);
/* Begins the one that was asked for before there was a process. */
_must_use_ struct err *ses_debug_log_wanted(struct ses_debug *s);
/* " 1234 steps, 56 KB\n"; nothing without a log. */
void ses_debug_put_log(const struct ses_debug *s, struct buf *out);

/* --- ses_debug_name.c --- */
/* "main+0x12", "libc.so.6!puts+0x5", "libx.so+0x1234", "" unknown. */
void ses_debug_put_where(struct ses_debug *s, uint64_t live, struct buf *out);
/* Whether the running target has an address of the database: what is imported has a made-up one, and is in some other object. */
bool ses_debug_is_in_target(const struct ses_snap *sn, uint64_t va);
/* Whether what lies in the target where the database's file would begins as that file does; true also where that file is not here. */
bool ses_debug_is_own(struct ses_debug *s);
/* The database's address; false: it is not of it. */
bool ses_debug_to_va(const struct ses_debug *s, uint64_t live, uint64_t *ret);
/* A function of a loaded object. */
bool ses_debug_find_symbol(struct ses_debug *s, const char *name, uint64_t *ret_live);
const struct fmt_bin *ses_debug_bin(void *ctx, uint64_t live, uint64_t *ret_base);
/* The source line of a place; false: not known. The text is borrowed from the image. */
bool ses_debug_source(const struct ses_debug *s, uint64_t va, struct ses_text *ret_file, uint32_t *ret_line);
void ses_debug_object_fini(struct debug_object *o);

/* --- ses_debug_expr.c --- */
_must_use_ struct err *ses_debug_eval(struct ses_debug *s, const char *text, uint64_t *ret);

/* --- ses_debug_show.c --- */
void ses_debug_put_code(struct ses_debug *s, uint64_t live, uint32_t cnt, struct buf *out);
const char *ses_debug_signal_name(int sig);
void ses_debug_show_stop(struct ses_debug *s, struct buf *out);

/* --- ses_debug_step.c --- */
_must_use_ struct err *ses_debug_out(struct ses_debug *s);
_must_use_ struct err *ses_debug_unwound(struct ses_debug *s);
/* A register of the frame that is looked at: of callers those are known that are saved for them. */
bool ses_debug_frame_reg(struct ses_debug *s, int reg, uint64_t *ret);

#endif
