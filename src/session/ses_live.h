/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SES_LIVE_H
#define SESSION_SES_LIVE_H

#include "session/session.h"

/*
 * A trace that somebody watches while it is made. A process of its own traces (this program, as `scry trace` would), so that what waits for
 * children, becomes a subreaper or parses hostile memory is none of the front end's; its events come over a pipe as rows that are ready to be
 * shown, and the newest of them are kept.
 */
struct ses_live;

enum ses_live_kind {
	SES_LIVE_CALL,    /* a system call */
	SES_LIVE_EVENT,   /* exec, fork, exit, signal, mmap */
	SES_LIVE_FINDING, /* what a rule found */
	SES_LIVE_LOST,    /* events that are missing here */
	SES_LIVE_SAID,    /* about the trace itself */
	SES_LIVE_END,     /* the last one: how it ended */
	SES_LIVE_KIND_COUNT
};

struct ses_live_frame {
	struct ses_text module;   /* path; "" not known */
	struct ses_text func;     /* by the module's symbols; "" none */
	uint64_t off;             /* bytes in the module's file, of the instruction behind the call; without a module the address */
	uint64_t func_off;        /* of it in func */
	bool is_guess;            /* the first word of the stack that could be it */
};

#define SES_LIVE_FRAMES_MAX 64

struct ses_live_row {
	uint64_t id;              /* ascending, of every row that came */
	enum ses_live_kind kind;
	bool is_error;            /* the call failed; of the end: the trace could not be made */
	bool is_unfinished;
	uint16_t classes;         /* of the call, as its table has them */
	uint32_t pid, tid;        /* 0: none */
	uint64_t time;            /* ns since the first event; 0: none */
	uint64_t ns;              /* how long it took; 0: not known */
	struct ses_text comm, name, args, result; /* as strace writes them, escaped */
	const struct ses_live_frame *frames; /* the innermost first */
	uint32_t frame_cnt;
	uint32_t site;            /* the frame outside of the C library, where there are frames */
};

/* --- the tracer's side ------------------------------------------------------------------------------------------------ */

/* Appends the row as the other side reads it. */
struct buf;
void ses_live_put(const struct ses_live_row *r, struct buf *out);
/* Reads one row from `len` bytes, with its strings in them and its frames in `frames` (SES_LIVE_FRAMES_MAX). The bytes it took; 0: it is
 * not whole yet; SIZE_MAX: these are none. */
size_t ses_live_parse(const uint8_t *bytes, size_t len, struct ses_live_frame *frames, struct ses_live_row *ret);

/* --- the watcher's side ----------------------------------------------------------------------------------------------- */

struct ses_live_opts {
	const char *const *words; /* of `scry trace`, ended by null */
	const char *program;      /* scry itself; null: the program that runs */
	int event_fd;             /* an eventfd that is told of news, at most some thirty times a second; -1: none */
	uint32_t rows_max;        /* kept; 0: 65,536 */
	uint64_t bytes_max;       /* of them; 0: 64 MB */
};

/* Starts the trace. The process that traces, and what it started, end with the thread that calls this. Errors: os, no memory; what is wrong with
 * the words or the machine comes as the last row. */
_must_use_ struct err *ses_live_start(const struct ses_live_opts *o, struct ses_live **ret);
/* Ends the trace and what it started; what came stays. */
void ses_live_stop(struct ses_live *l);
/* Stops and forgets it. Null is accepted. */
void ses_live_free(struct ses_live *l);

/* What the rows are now, and were asked to be. */
struct ses_live_state {
	uint64_t events;          /* that came */
	uint64_t kept, kept_max;  /* rows that are kept */
	uint64_t dropped;         /* rows that are not kept any more, or were not for want of room while it paused */
	uint64_t lost;            /* events the tracer says are missing, as far as it knows their number */
	uint64_t shown;           /* rows the filter leaves, of those that are kept */
	uint64_t gone;            /* rows the filter left that are not kept any more: they came before `shown` */
	uint64_t last_id;         /* 0: none came yet */
	bool is_running, is_paused;
	bool is_bad;              /* it could not be made, see the last row */
};
void ses_live_get_state(struct ses_live *l, struct ses_live_state *ret);
/* Whether something changed since the last time this was asked. */
bool ses_live_has_news(struct ses_live *l);
/* Waits until something changes, at most `ms`. */
void ses_live_wait(struct ses_live *l, int ms);
/* Paused, rows stay what they are: new ones are kept behind them as long as there is room. */
void ses_live_pause(struct ses_live *l, bool is_paused);

/*
 * The filter: words separated by blanks that a row has to meet all. `%file` a class of calls; `pid=N` (a process or thread);
 * `call=NAME,NAME`; `error`; `finding`; `comm=TEXT`; anything else is a part of its text, or a glob of all of it. A word behind `!`
 * must not be met. Null or "": all rows. Error invalid: a class or number that is none; the filter is what it was.
 */
_must_use_ struct err *ses_live_filter(struct ses_live *l, const char *filter);

/* Rows of the filter from the off-th on, at most `max`; everything is in the arena. Returns how many; 0 as well when memory is out. */
uint32_t ses_live_rows(struct ses_live *l, uint64_t off, uint32_t max, struct arena *a, struct ses_live_row *ret);
/* Which of the filter's rows has this id, or is the next one. */
uint64_t ses_live_index(struct ses_live *l, uint64_t id);
/* The next row of the filter, from the off-th on (back: before it), that has the text; false: none. */
bool ses_live_find(struct ses_live *l, const char *text, uint64_t off, bool back, uint64_t *ret);

#endif
