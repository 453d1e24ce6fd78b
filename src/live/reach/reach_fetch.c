/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop: submit while the window has room, take an answer, move its job on. What limits a transfer is the window: it has to hold the
 * bandwidth times the round trip, and nobody knows either. So it starts small and doubles as long as that makes bytes come faster.
 */
#include "live/reach/reach_fetch.h"

#include "base/bits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FIRST_WINDOW_CHUNKS 4
#define MAX_WINDOW_LEN (8u << 20)
/* Files open there at once. */
#define MAX_FILES 200
/* Requests of a file when it is opened (early()), which nobody holds back. */
#define EARLY_CNT 5
/* Descriptors that the first file is likely to get: servers count up from those that they have open (lldb-server 4 or 5, gdbserver and
 * scry as well). */
#define GUESS_FIRST 3
#define GUESS_CNT 6
/* Bytes of small files that are on their way before it is known how fast the link is. */
#define MAX_EARLY_LEN (4u << 20)
/* How long what a reader wants may have to wait for what nobody does, seconds. */
#define READER_WAIT_S 0.5
#define SLOT_CNT 2048
/* A window that has stopped growing: below this rate on the wire, bytes/s, compression costs less than it saves (measured, docs/remote.md).
 */
#define COMPRESS_RATE 30e6

enum job_stage {
	STAGE_LOOK, /* nothing asked */
	STAGE_LOOKING,
	STAGE_OPEN, /* to be opened */
	STAGE_OPENING,
	STAGE_STATTING,
	STAGE_PROBING, /* no length is told: by reads of a byte it is found */
	STAGE_PROVING, /* a SHA-256 is asked for */
	STAGE_BUSY,    /* somebody else fetches it */
	STAGE_READING,
	STAGE_OVER,
};

struct reach_job_state {
	enum job_stage stage;
	uint64_t fd;
	bool is_open, is_open_asked;
	bool is_early; /* all of it was asked for when it was opened */
	bool is_ahead; /* ... or its first and last block */
	bool is_guessing, is_guessed; /* descriptors were guessed, and its own among them */
	struct reach_part *part;
	struct reach_meta stat; /* as it was when it was opened */
	bool has_stat;
	/* Blocks already asked for, or there; the next in order; the piece of a block not yet asked for. */
	uint64_t *asked;
	size_t block_cnt, next_block;
	uint64_t piece_off, piece_end;
	/* Short answers left holes. */
	struct reach_range *holes;
	size_t hole_cnt, hole_cap;
	unsigned reads_open;
	bool is_held, is_ending; /* by the sink: REACH_REST_WAITS, REACH_REST_NEVER */
	/* The length is in [low, high]. */
	uint64_t low, high, guess;
	unsigned probe_cnt;
	bool has_hash, is_hash_asked, is_stat_asked, has_second, is_end_asked, has_end;
	uint8_t hash[16];
	struct reach_meta second;
	int open_errno, second_errno;
};

struct slot {
	unsigned job_idx;
	enum reach_op op;
	uint64_t off, len, fd;
	bool is_used;
	bool is_guess; /* sent before the descriptor was known */
	bool is_ahead; /* sent before it was known whether the bytes are wanted */
};

struct fetch {
	struct reach_peer *p;
	struct reach_fetch_job *jobs;
	unsigned job_cnt, first_job; /* jobs before it need nothing more submitted */
	const struct reach_sink *sink;
	struct slot *slots;
	unsigned slot_hint, open_cnt, file_cnt, max_file_cnt;
	uint64_t flying_len;
	/* Growth: bytes of answers and on the wire since the window was last judged. */
	uint64_t epoch_ns, epoch_len, epoch_wire_len;
	double best_rate, wire_rate;
	unsigned flat_cnt;
	struct reach_progress progress;
};

static uint64_t chunk_len(const struct fetch *f)
{
	return MIN(f->p->chunk_len, (uint64_t)REACH_BLOCK_LEN);
}

/* --- submitting --- */

static struct err *submit(struct fetch *f, unsigned job_idx, struct reach_req req)
{
	unsigned i = f->slot_hint;
	while (f->slots[i].is_used)
		i = (i + 1) % SLOT_CNT;
	f->slot_hint = (i + 1) % SLOT_CNT;
	f->slots[i] = (struct slot){.job_idx = job_idx, .op = req.op, .off = req.off, .len = req.len, .fd = req.fd, .is_used = true};
	f->open_cnt++;
	if (req.op == REACH_READ) {
		f->flying_len += req.len;
		f->jobs[job_idx].state->reads_open++;
	}
	req.tag = i;
	return f->p->ops->submit(f->p, &req);
}

static struct err *submit_read(struct fetch *f, unsigned job_idx, uint64_t off, uint64_t len)
{
	bool is_slow = f->flat_cnt && f->wire_rate > 0 && f->wire_rate < COMPRESS_RATE;
	const struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_req req = {.op = REACH_READ, .path = j->path, .fd = j->state->fd, .off = off, .len = len, .may_compress = is_slow};
	req.meta = j->state->has_stat ? &j->state->stat : NULL;
	return submit(f, job_idx, req);
}

/* The next block to ask for, SIZE_MAX: none is left. */
static size_t next_block(struct reach_job_state *s)
{
	while (s->next_block < s->block_cnt && bits_get(s->asked, s->next_block))
		s->next_block++;
	return s->next_block < s->block_cnt ? s->next_block : SIZE_MAX;
}

/* The block to ask for, in whatever order the sink wants them. SIZE_MAX: none now, and `is_held` when there will be others. */
static size_t pick_block(struct fetch *f, struct reach_fetch_job *j)
{
	struct reach_job_state *s = j->state;
	size_t first = SIZE_MAX;
	s->is_held = false;
	if (!f->sink->reader)
		return next_block(s);
	do {
		enum reach_rest rest = f->sink->reader->next(f->sink->reader->ctx, j, &first);
		s->is_held = rest != REACH_REST_COMES;
		s->is_ending = rest == REACH_REST_NEVER;
	} while (first < s->block_cnt && bits_get(s->asked, first));
	if (first < s->block_cnt)
		return first;
	if (s->is_held && next_block(s) != SIZE_MAX)
		return SIZE_MAX;
	s->is_held = s->is_ending = false;
	return next_block(s);
}

/* Submits one read of the job; false: it has nothing to ask for now. */
static struct err *read_more(struct fetch *f, unsigned job_idx, bool *ret_did)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	*ret_did = true;
	if (s->hole_cnt) {
		struct reach_range r = s->holes[--s->hole_cnt];
		return submit_read(f, job_idx, r.off, r.len);
	}
	if (s->piece_off == s->piece_end) {
		size_t i = pick_block(f, &f->jobs[job_idx]);
		*ret_did = i != SIZE_MAX;
		if (!*ret_did)
			return NULL;
		bits_set(s->asked, i);
		s->piece_off = (uint64_t)i * REACH_BLOCK_LEN;
		s->piece_end = MIN(s->piece_off + REACH_BLOCK_LEN, reach_part_len(s->part));
	}
	uint64_t len = MIN(chunk_len(f), s->piece_end - s->piece_off), off = s->piece_off;
	s->piece_off += len;
	return submit_read(f, job_idx, off, len);
}

static struct err *ask_open(struct fetch *f, unsigned job_idx)
{
	f->file_cnt++;
	f->jobs[job_idx].state->is_open_asked = true;
	return submit(f, job_idx, (struct reach_req){.op = REACH_OPEN, .path = f->jobs[job_idx].path, .flags = GDB_O_RDONLY});
}

/* How it was when it was opened is asked along with its opening, for the descriptors it may get: a round trip less. */
static struct err *ask_guesses(struct fetch *f, unsigned job_idx)
{
	struct err *e = NULL;
	f->jobs[job_idx].state->is_guessing = true;
	for (uint64_t fd = GUESS_FIRST; fd < GUESS_FIRST + GUESS_CNT && !e; fd++) {
		e = submit(f, job_idx, (struct reach_req){.op = REACH_STAT, .fd = fd});
		f->slots[(f->slot_hint + SLOT_CNT - 1) % SLOT_CNT].is_guess = true;
	}
	return e;
}

static struct err *ask_hash(struct fetch *f, unsigned job_idx)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	s->is_hash_asked = true;
	return submit(f, job_idx, (struct reach_req){.op = REACH_HASH, .path = f->jobs[job_idx].path, .len = f->jobs[job_idx].meta.len});
}

/* Everything is asked for: what compares it with the file there, in the same pipeline. */
static struct err *ask_checks(struct fetch *f, unsigned job_idx, bool *ret_did)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	*ret_did = true;
	if (f->p->hash != REACH_NO_HASH && !s->is_hash_asked)
		return ask_hash(f, job_idx);
	if (s->has_stat && !s->is_stat_asked) {
		s->is_stat_asked = true;
		return submit(f, job_idx, (struct reach_req){.op = REACH_STAT, .fd = s->fd});
	}
	/* Behind the end there must be nothing: a length that is too short would else go unseen. */
	if (!s->is_end_asked) {
		s->is_end_asked = true;
		return submit_read(f, job_idx, reach_part_len(s->part), 1);
	}
	*ret_did = false;
	return NULL;
}

static struct err *fail_job(struct fetch *f, unsigned job_idx, struct err *why, bool keep);

/* The rest of it is not wanted: whether it is the file it was is all that is asked, where that can be. */
static struct err *ask_end(struct fetch *f, unsigned job_idx, bool *ret_did)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	*ret_did = true;
	if (s->has_second && (s->second_errno || s->second.len != s->stat.len || s->second.mtime != s->stat.mtime))
		return fail_job(f, job_idx, err_new(ERR_STALE, "%s: was changed there while it was read; try again", j->path), false);
	if (!s->has_stat || s->has_second)
		return fail_job(f, job_idx, err_new(ERR_CANCELLED, "%s: only a part of it was fetched", j->path), true);
	*ret_did = !s->is_stat_asked;
	if (s->is_stat_asked)
		return NULL;
	s->is_stat_asked = true;
	return submit(f, job_idx, (struct reach_req){.op = REACH_STAT, .fd = s->fd});
}

/* Submits what the job needs next, if it needs something now. */
static struct err *push_job(struct fetch *f, unsigned job_idx, bool *ret_did)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	*ret_did = false;
	struct err *e = NULL;
	switch (s->stage) {
	case STAGE_LOOK:
		s->stage = STAGE_LOOKING;
		*ret_did = true;
		e = submit(f, job_idx, (struct reach_req){.op = REACH_LOOK, .path = j->path});
		/* What may turn out to be needless costs less than to wait. */
		if (e || f->p->is_lent || f->file_cnt >= f->max_file_cnt)
			return e;
		e = ask_open(f, job_idx);
		return e || f->job_cnt > 1 || !f->p->is_pipelined ? e : ask_guesses(f, job_idx);
	case STAGE_OPEN:
		if (f->file_cnt >= f->max_file_cnt)
			return NULL;
		s->stage = STAGE_OPENING;
		*ret_did = true;
		return ask_open(f, job_idx);
	case STAGE_READING:
		/* Of a file that is read while it comes the hash can wait until it is there. */
		if (f->p->has_spare && f->p->hash != REACH_NO_HASH && !s->is_hash_asked && !f->sink->reader) {
			*ret_did = true;
			return ask_hash(f, job_idx);
		}
		e = read_more(f, job_idx, ret_did);
		if (s->is_ending && !*ret_did && !e)
			return ask_end(f, job_idx, ret_did);
		return e || *ret_did || s->is_held ? e : ask_checks(f, job_idx, ret_did);
	case STAGE_LOOKING:
	case STAGE_OPENING:
	case STAGE_STATTING:
	case STAGE_PROBING:
	case STAGE_PROVING:
	case STAGE_BUSY:
	case STAGE_OVER:
		break;
	}
	return NULL;
}

static bool has_room(const struct fetch *f)
{
	return f->open_cnt < MIN(f->p->max_open_cnt, SLOT_CNT - EARLY_CNT * MAX_FILES) &&
	       (!f->flying_len || f->flying_len + chunk_len(f) <= f->p->window_len);
}

/* In order, so that the first file is there first. */
static struct err *fill_window(struct fetch *f)
{
	while (f->first_job < f->job_cnt && f->jobs[f->first_job].state->stage == STAGE_OVER)
		f->first_job++;
	for (unsigned i = f->first_job; i < f->job_cnt && has_room(f);) {
		bool did;
		struct err *e = push_job(f, i, &did);
		if (e)
			return e;
		i += !did;
	}
	return NULL;
}

/* --- a job's life --- */

static struct err *close_file(struct fetch *f, unsigned job_idx)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	if (!s->is_open)
		return NULL;
	s->is_open = false;
	f->file_cnt--;
	return submit(f, job_idx, (struct reach_req){.op = REACH_CLOSE, .fd = s->fd});
}

/* No more of it: closes it there. */
static struct err *close_job(struct fetch *f, unsigned job_idx)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	s->stage = STAGE_OVER;
	f->progress.done_cnt++;
	return close_file(f, job_idx);
}

static void end_part(const struct reach_sink *sink, struct reach_fetch_job *j, bool keep)
{
	struct reach_part *part = take_ptr(j->state->part);
	if (!part)
		return;
	if (keep && !j->is_at_once)
		reach_part_close(part);
	else
		reach_part_drop(part);
	sink->give_up(sink->ctx, j);
}

/* Takes `why`. What has come is kept when it may be right. */
static struct err *fail_job(struct fetch *f, unsigned job_idx, struct err *why, bool keep)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	if (j->state->stage == STAGE_OVER) {
		err_free(why);
		return NULL;
	}
	j->err = why;
	end_part(f->sink, j, keep);
	return close_job(f, job_idx);
}

/* The part is there: what of it has to be asked for. */
static struct err *begin_reading(struct fetch *f, unsigned job_idx)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	uint64_t len = reach_part_len(s->part);
	s->block_cnt = (size_t)(len / REACH_BLOCK_LEN + (len % REACH_BLOCK_LEN != 0));
	s->asked = calloc(bits_words(s->block_cnt) + 1, sizeof(*s->asked));
	if (!s->asked)
		return &err_nomem;
	for (size_t i = 0; i < s->block_cnt; i++) {
		uint64_t off = (uint64_t)i * REACH_BLOCK_LEN;
		if (reach_part_has(s->part, off, MIN(len - off, REACH_BLOCK_LEN)))
			bits_set(s->asked, i);
	}
	reach_part_want(s->part, f->p->hash);
	if (s->is_early && s->stage == STAGE_BUSY) {
		/* What was asked for early came while nobody wanted it. */
		s->is_early = s->is_hash_asked = s->is_stat_asked = s->is_end_asked = false;
		s->has_hash = s->has_second = s->has_end = false;
	}
	if (s->is_early || s->is_ahead)
		bits_set(s->asked, 0);
	if (s->is_ahead)
		bits_set(s->asked, s->block_cnt - 1);
	s->stage = STAGE_READING;
	f->progress.done_len += reach_part_done_len(s->part);
	struct err *e = f->sink->reader ? f->sink->reader->begun(f->sink->reader->ctx, &f->jobs[job_idx], s->part) : NULL;
	return e ? fail_job(f, job_idx, e, false) : NULL;
}

/* Who reads a file while it comes begins with its first and last block. */
static struct err *ask_ahead(struct fetch *f, unsigned job_idx)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	uint64_t len = f->jobs[job_idx].meta.len, last = (len - 1) / REACH_BLOCK_LEN * REACH_BLOCK_LEN;
	if (chunk_len(f) < REACH_BLOCK_LEN)
		return NULL;
	s->is_ahead = true;
	struct err *e = submit_read(f, job_idx, 0, REACH_BLOCK_LEN);
	f->slots[(f->slot_hint + SLOT_CNT - 1) % SLOT_CNT].is_ahead = true;
	if (!e)
		e = submit_read(f, job_idx, last, len - last);
	f->slots[(f->slot_hint + SLOT_CNT - 1) % SLOT_CNT].is_ahead = true;
	return e;
}

/*
 * It is open. A small file of which it is known that it is not here is asked for at once with all that compares it, in the order in which it
 * would be otherwise; whether it is wanted is known when the first of the answers comes.
 */
static struct err *opened(struct fetch *f, unsigned job_idx)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	uint64_t len = j->meta.len;
	s->stage = STAGE_STATTING;
	s->is_guessed = s->is_guessing && s->fd >= GUESS_FIRST && s->fd < GUESS_FIRST + GUESS_CNT;
	struct err *e = s->is_guessed ? NULL : submit(f, job_idx, (struct reach_req){.op = REACH_STAT, .fd = s->fd});
	if (!e && f->sink->reader && j->is_new && f->p->is_ordered && j->meta.has_len && len > REACH_BLOCK_LEN && len <= f->p->max_off)
		return ask_ahead(f, job_idx);
	if (e || !j->is_new || !f->p->is_ordered || !j->meta.has_len || !len || len > chunk_len(f) || f->flying_len + len > MAX_EARLY_LEN)
		return e;
	s->is_early = s->is_stat_asked = s->is_end_asked = j->is_sha256_asked = true;
	e = submit_read(f, job_idx, 0, len);
	if (!e && f->p->hash != REACH_NO_HASH)
		e = ask_hash(f, job_idx);
	if (!e)
		e = submit(f, job_idx, (struct reach_req){.op = REACH_STAT, .fd = s->fd});
	return e ? e : submit_read(f, job_idx, len, 1);
}

/* Asks the sink. */
static struct err *place(struct fetch *f, unsigned job_idx, bool is_last)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	enum reach_place where = REACH_PLACE_LATER;
	struct err *e = f->sink->place(f->sink->ctx, j, is_last, &where, &s->part);
	if (e)
		return fail_job(f, job_idx, e, true);
	if (is_last && s->stage != STAGE_BUSY && where != REACH_PLACE_PROVE)
		f->progress.total_len += j->meta.len;
	switch (where) {
	case REACH_PLACE_LATER:
		s->stage = s->is_open_asked ? STAGE_OPENING : STAGE_OPEN;
		return s->is_open ? opened(f, job_idx) : NULL;
	case REACH_PLACE_PROVE:
		j->is_sha256_asked = true;
		if (!f->p->has_sha256)
			return place(f, job_idx, is_last);
		s->stage = STAGE_PROVING;
		return submit(f, job_idx, (struct reach_req){.op = REACH_SHA256, .path = j->path});
	case REACH_PLACE_BUSY:
		s->stage = STAGE_BUSY;
		return NULL;
	case REACH_PLACE_PART:
		return begin_reading(f, job_idx);
	case REACH_PLACE_HAS:
		break;
	}
	j->is_done = true;
	f->progress.done_len += j->meta.len;
	if (!is_last)
		f->progress.total_len += j->meta.len;
	return close_job(f, job_idx);
}

/* Its length is known: `meta` is complete. */
static struct err *start(struct fetch *f, unsigned job_idx)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	if (j->meta.len <= f->p->max_off)
		return place(f, job_idx, true);
	struct err *e = err_new(ERR_UNSUPPORTED, "%s: %s gives wrong bytes, or none, beyond %llu GiB, and the file has %.1f GiB", j->path,
				f->p->what, (unsigned long long)(f->p->max_off >> 30), (double)j->meta.len / (1 << 30));
	return fail_job(f, job_idx, err_fix(e, "fetch it over ssh:// or from `scry platform`"), true);
}

/* Asks what finds out the length: a guess first, then by halves. When it is found the job goes on. */
static struct err *probe(struct fetch *f, unsigned job_idx)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	if (s->low == s->high) {
		j->meta.has_len = true;
		j->meta.len = s->low;
		return start(f, job_idx);
	}
	if (++s->probe_cnt > 200)
		return fail_job(f, job_idx,
				err_new(ERR_BAD_INPUT, "%s: the server does not say how long it is, and gives no end to it", j->path),
				true);
	uint64_t off = s->low + (s->high - s->low) / 2;
	if (s->guess > s->low && s->guess <= s->high)
		off = s->guess - 1;
	else if (s->guess == s->low)
		off = s->low;
	else if (s->high == UINT64_MAX)
		off = s->low * 2;
	return submit(f, job_idx, (struct reach_req){.op = REACH_READ, .fd = s->fd, .off = off, .len = s->low ? 1 : 64});
}

struct memory {
	struct gdb_span bytes;
};

static size_t read_memory(void *ctx, uint64_t off, uint8_t *dst, size_t len)
{
	const struct memory *m = ctx;
	if (off || !m->bytes.len)
		return 0;
	len = MIN(len, m->bytes.len);
	memcpy(dst, m->bytes.s, len);
	return len;
}

static struct err *probed(struct fetch *f, unsigned job_idx, const struct slot *slot, const struct reach_answer *a)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	if (a->os_errno)
		return fail_job(f, job_idx, reach_file_err(a->os_errno, f->jobs[job_idx].path), true);
	if (!slot->off && !s->low) {
		s->guess = reach_elf_end(read_memory, &(struct memory){a->data});
		s->low = a->data.len;
		if (!a->data.len)
			s->high = 0;
		else if (a->data.len < slot->len)
			s->guess = s->low;
	} else if (a->data.len) {
		s->low = MAX(s->low, slot->off + 1);
	} else {
		s->high = MIN(s->high, slot->off);
		s->guess = 0;
	}
	return probe(f, job_idx);
}

static const char *kind_name(uint32_t mode)
{
	return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static struct err *statted(struct fetch *f, unsigned job_idx, const struct reach_answer *a)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	if (s->stage != STAGE_STATTING) {
		s->has_second = true;
		s->second = a->meta;
		s->second_errno = a->os_errno;
		return NULL;
	}
	if (!a->os_errno) {
		s->stat = a->meta;
		s->has_stat = true;
		if (a->meta.has_mode && a->meta.mode & S_IFMT && !S_ISREG(a->meta.mode))
			return fail_job(f, job_idx,
					err_new(ERR_INVALID, "%s: is %s there, not a file", j->path, kind_name(a->meta.mode)),
					true);
		if (j->meta.has_len && a->meta.has_len && j->meta.len != a->meta.len)
			return fail_job(f, job_idx,
					err_new(ERR_BAD_INPUT, "%s: the server says that it has %llu bytes, and that it has %llu", j->path,
						(unsigned long long)j->meta.len, (unsigned long long)a->meta.len),
					true);
		j->meta.has_len |= a->meta.has_len;
		j->meta.len = a->meta.has_len ? a->meta.len : j->meta.len;
		j->meta.has_mtime = a->meta.has_mtime;
		j->meta.mtime = a->meta.mtime;
		j->meta.has_mode = a->meta.has_mode;
		j->meta.mode = a->meta.mode;
	}
	if (j->meta.has_len)
		return start(f, job_idx);
	s->stage = STAGE_PROBING;
	s->low = 0;
	s->high = UINT64_MAX;
	return probe(f, job_idx);
}

static struct err *add_hole(struct reach_job_state *s, uint64_t off, uint64_t len)
{
	if (s->hole_cnt == s->hole_cap) {
		size_t cap = s->hole_cap ? s->hole_cap * 2 : 16;
		struct reach_range *all = realloc(s->holes, cap * sizeof(*all));
		if (!all)
			return &err_nomem;
		s->holes = all;
		s->hole_cap = cap;
	}
	s->holes[s->hole_cnt++] = (struct reach_range){off, len};
	return NULL;
}

static struct err *data_came(struct fetch *f, unsigned job_idx, const struct slot *slot, const struct reach_answer *a)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	s->reads_open--;
	/* Of what was asked ahead nothing is taken once something came too soon. */
	if (slot->is_ahead && !s->part)
		s->is_ahead = false;
	if (s->stage == STAGE_OVER || s->stage == STAGE_BUSY || (slot->is_ahead && !s->is_ahead))
		return NULL;
	/* Its length and place are known by the answers before it, from whoever keeps the order it said. */
	if (!s->part && s->stage != STAGE_PROBING)
		return fail_job(f, job_idx, err_new(ERR_BAD_INPUT, "%s: bytes came before they were wanted", j->path), false);
	if (a->data.len > slot->len)
		return fail_job(f, job_idx,
				err_new(ERR_BAD_INPUT, "%s: the server sends %zu bytes where %llu were asked for", j->path, a->data.len,
					(unsigned long long)slot->len),
				false);
	if (s->stage == STAGE_PROBING)
		return probed(f, job_idx, slot, a);
	if (slot->off == reach_part_len(s->part)) {
		s->has_end = true;
		/* Where nothing can be read at all, the error says more than that there is nothing. */
		if (a->os_errno && slot->off < f->p->max_off)
			return fail_job(f, job_idx, reach_file_err(a->os_errno, j->path), false);
		if (a->data.len && !slot->off)
			return fail_job(f, job_idx,
					err_new(ERR_BAD_INPUT, "%s: has bytes, and the server says that it is empty, as files in /proc do",
						j->path),
					false);
		if (a->data.len)
			return fail_job(f, job_idx,
					err_new(ERR_BAD_INPUT, "%s: goes on behind the %llu bytes that the server says it has", j->path,
						(unsigned long long)j->meta.len),
					false);
		return NULL;
	}
	if (a->os_errno)
		return fail_job(f, job_idx, reach_file_err(a->os_errno, j->path), true);
	if (!a->data.len)
		return fail_job(f, job_idx,
				err_new(ERR_BAD_INPUT, "%s: it ends at byte %llu, and the server says that it has %llu", j->path,
					(unsigned long long)slot->off, (unsigned long long)j->meta.len),
				false);
	/* From before, and asked for all the same. */
	if ((s->is_early || slot->is_ahead) && reach_part_has(s->part, slot->off, a->data.len))
		return NULL;
	struct err *e = reach_part_write(s->part, slot->off, a->data.s, a->data.len);
	if (e)
		return fail_job(f, job_idx, e, true);
	f->progress.done_len += a->data.len;
	f->progress.came_len += a->data.len;
	f->epoch_len += a->data.len;
	if (a->data.len < slot->len)
		return add_hole(s, slot->off + a->data.len, slot->len - a->data.len);
	return NULL;
}

static void put_id(char *out, size_t out_len, const uint8_t *id, unsigned id_len)
{
	for (unsigned i = 0; i < id_len && 2 * i + 3 < out_len; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
}

/* Everything is there: what was promised? */
static struct err *check(struct fetch *f, unsigned job_idx, uint8_t sha256[SHA256_LEN])
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	uint8_t hash[16], id[REACH_MAX_ID_LEN] = {0};
	if (s->has_stat && s->has_second && (s->second_errno || s->second.len != s->stat.len || s->second.mtime != s->stat.mtime))
		return err_new(ERR_STALE, "%s: was changed there while it was read; try again", j->path);
	unsigned id_len = reach_elf_id(reach_part_read, s->part, id);
	if (j->meta.id_len && (j->meta.id_len != id_len || memcmp(j->meta.id, id, id_len))) {
		char want[80] = "", got[80] = "none";
		put_id(want, sizeof(want), j->meta.id, j->meta.id_len);
		put_id(got, sizeof(got), id, id_len);
		return err_new(ERR_BAD_INPUT, "%s: the server promises build-id %s, the bytes have %s", j->path, want, got);
	}
	memcpy(j->meta.id, id, id_len);
	j->meta.id_len = id_len;
	struct err *e = reach_part_finish(s->part, sha256, hash);
	if (!e && s->has_hash && memcmp(hash, s->hash, sizeof(hash)))
		e = err_new(ERR_STALE,
			    "%s: the bytes that came do not have the hash that the server says; it may have been changed there: try again",
			    j->path);
	return e;
}

static struct err *finish_job(struct fetch *f, unsigned job_idx)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	uint8_t sha256[SHA256_LEN];
	struct err *e = check(f, job_idx, sha256);
	if (e)
		return fail_job(f, job_idx, e, e->kind != ERR_STALE && e->kind != ERR_BAD_INPUT);
	e = f->sink->publish(f->sink->ctx, j, take_ptr(s->part), sha256);
	if (e)
		return fail_job(f, job_idx, e, true);
	j->is_done = true;
	return close_job(f, job_idx);
}

/* Whether everything of it has come, checks included. */
static bool is_complete(const struct fetch *f, const struct reach_job_state *s)
{
	return s->stage == STAGE_READING && !s->reads_open && s->has_end && reach_part_done_len(s->part) == reach_part_len(s->part) &&
	       (f->p->hash == REACH_NO_HASH || (s->is_hash_asked && s->has_hash)) && (!s->has_stat || s->has_second);
}

/* It is not to be had by that path: by its next one, else not at all. */
static struct err *open_failed(struct fetch *f, unsigned job_idx)
{
	struct reach_fetch_job *j = &f->jobs[job_idx];
	struct reach_job_state *s = j->state;
	int os_errno = s->open_errno;
	/* One that is too many waits until another is closed. */
	if ((os_errno == EMFILE || os_errno == ENFILE) && f->file_cnt) {
		f->max_file_cnt = f->file_cnt;
		s->stage = STAGE_LOOK;
	} else if ((os_errno == ENOENT || os_errno == ENOTDIR) && j->next_paths && *j->next_paths) {
		j->path = *j->next_paths++;
		s->stage = STAGE_LOOK;
	} else {
		return fail_job(f, job_idx, reach_file_err(os_errno, j->path), true);
	}
	s->open_errno = 0;
	return NULL;
}

static struct err *open_answered(struct fetch *f, unsigned job_idx, const struct reach_answer *a)
{
	struct reach_job_state *s = f->jobs[job_idx].state;
	s->is_open_asked = false;
	if (a->os_errno) {
		f->file_cnt--;
		s->open_errno = a->os_errno;
		return s->stage == STAGE_OPENING ? open_failed(f, job_idx) : NULL;
	}
	s->fd = a->value;
	s->is_open = true;
	if (s->stage == STAGE_OVER)
		return close_file(f, job_idx);
	return s->stage == STAGE_OPENING ? opened(f, job_idx) : NULL;
}

static struct err *answered(struct fetch *f, const struct slot *slot, const struct reach_answer *a)
{
	unsigned i = slot->job_idx;
	struct reach_fetch_job *j = &f->jobs[i];
	struct reach_job_state *s = j->state;
	struct err *e = NULL;
	switch (slot->op) {
	case REACH_LOOK:
		if (s->stage != STAGE_LOOKING)
			break;
		j->meta = a->meta;
		e = s->open_errno ? open_failed(f, i) : place(f, i, false);
		break;
	case REACH_OPEN:
		e = open_answered(f, i, a);
		break;
	case REACH_STAT:
		if (slot->is_guess && (!s->is_guessed || slot->fd != s->fd || s->stage != STAGE_STATTING))
			break;
		s->is_guessed = false;
		e = slot->is_guess && a->os_errno ? submit(f, i, (struct reach_req){.op = REACH_STAT, .fd = s->fd}) : statted(f, i, a);
		break;
	case REACH_READ:
		e = data_came(f, i, slot, a);
		break;
	case REACH_HASH:
		/* A server without it is no fault. */
		s->has_hash = true;
		memcpy(s->hash, a->hash, sizeof(s->hash));
		if (a->os_errno) {
			f->p->hash = REACH_NO_HASH;
			s->has_hash = false;
		}
		break;
	case REACH_WRITE:
	case REACH_CLOSE:
	case REACH_UNLINK:
		break;
	case REACH_SHA256:
		if (s->stage != STAGE_PROVING)
			break;
		j->has_sha256 = !a->os_errno;
		memcpy(j->sha256, a->hash, sizeof(j->sha256));
		e = place(f, i, true);
		break;
	}
	return e || !is_complete(f, s) ? e : finish_job(f, i);
}

/* --- the window --- */

static void grow_window(struct fetch *f)
{
	if (f->epoch_len < f->p->window_len)
		return;
	uint64_t now = reach_now_ns();
	double rate = (double)f->epoch_len * 1e9 / (double)(now - f->epoch_ns + 1);
	f->wire_rate = (double)(f->p->wire_len - f->epoch_wire_len) * 1e9 / (double)(now - f->epoch_ns + 1);
	if (rate > f->best_rate * 1.1)
		f->flat_cnt = 0;
	else
		f->flat_cnt++;
	f->best_rate = MAX(f->best_rate, rate);
	uint64_t max_len = MIN((uint64_t)MAX_WINDOW_LEN, chunk_len(f) * f->p->max_open_cnt);
	/* What is wanted next waits for what is under way. */
	if (f->sink->reader)
		max_len = MIN(max_len, MAX(FIRST_WINDOW_CHUNKS * chunk_len(f), (uint64_t)(f->best_rate * READER_WAIT_S)));
	if (f->flat_cnt < 3)
		f->p->window_len = MIN(f->p->window_len * 2, max_len);
	f->epoch_ns = now;
	f->epoch_len = 0;
	f->epoch_wire_len = f->p->wire_len;
}

/* Nothing is left to do but what somebody else does. */
static struct err *retry_busy(struct fetch *f)
{
	if (f->sink->cancel && atomic_load(f->sink->cancel))
		return err_new(ERR_CANCELLED, "cancelled");
	f->progress.is_waiting = true;
	if (f->sink->progress)
		f->sink->progress(f->sink->progress_ctx, &f->progress);
	f->progress.is_waiting = false;
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	struct err *e = NULL;
	unsigned busy_cnt = 0;
	for (unsigned i = 0; i < f->job_cnt && !e; i++) {
		if (f->jobs[i].state->stage != STAGE_BUSY)
			continue;
		busy_cnt++;
		e = place(f, i, true);
	}
	return e || busy_cnt ? e : err_new(ERR_INTERNAL, "a file waits for nothing");
}

static bool is_held(const struct fetch *f)
{
	for (unsigned i = 0; i < f->job_cnt; i++) {
		if (f->jobs[i].state->stage == STAGE_READING && f->jobs[i].state->is_held)
			return true;
	}
	return false;
}

static struct err *wait_for_reader(struct fetch *f)
{
	struct err *e = f->p->ops->flush(f->p);
	if (!e && f->sink->cancel && atomic_load(f->sink->cancel))
		e = err_new(ERR_CANCELLED, "cancelled");
	if (!e)
		f->sink->reader->idle(f->sink->reader->ctx);
	return e;
}

static struct err *run(struct fetch *f)
{
	f->epoch_ns = reach_now_ns();
	/* What an earlier fetch did not wait for. */
	for (; f->p->stray_cnt; f->p->stray_cnt--) {
		struct reach_answer a;
		struct err *e = f->p->ops->next(f->p, &a);
		if (!e && a.op == REACH_OPEN && !a.os_errno) {
			f->p->stray_cnt++;
			e = f->p->ops->submit(f->p, &(struct reach_req){.op = REACH_CLOSE, .fd = a.value});
		}
		if (e)
			return e;
	}
	for (;;) {
		/* The chunk is known with the first answer. */
		f->p->window_len = MAX(f->p->window_len, FIRST_WINDOW_CHUNKS * chunk_len(f));
		struct err *e = fill_window(f);
		if (e)
			return e;
		/* Closing need not be waited for where the end of the connection closes, too. */
		if (f->progress.done_cnt == f->job_cnt && (!f->open_cnt || !f->p->must_close))
			return f->p->ops->flush(f->p);
		if (!f->open_cnt) {
			e = is_held(f) ? wait_for_reader(f) : retry_busy(f);
			if (e)
				return e;
			continue;
		}
		struct reach_answer a;
		e = f->p->ops->next(f->p, &a);
		if (e)
			return e;
		if (a.tag >= SLOT_CNT || !f->slots[a.tag].is_used)
			return err_new(ERR_BAD_INPUT, "the server answers a request nobody made");
		struct slot slot = f->slots[a.tag];
		f->slots[a.tag].is_used = false;
		f->open_cnt--;
		if (slot.op == REACH_READ)
			f->flying_len -= slot.len;
		e = answered(f, &slot, &a);
		if (e)
			return e;
		grow_window(f);
		if (f->sink->progress)
			f->sink->progress(f->sink->progress_ctx, &f->progress);
	}
}

static void free_state(const struct reach_sink *sink, struct reach_fetch_job *j)
{
	struct reach_job_state *s = j->state;
	if (!s)
		return;
	end_part(sink, j, true);
	free(s->asked);
	free(s->holes);
	free(s);
	j->state = NULL;
}

struct err *reach_fetch(struct reach_peer *p, struct reach_fetch_job *jobs, unsigned job_cnt, const struct reach_sink *sink)
{
	struct fetch f = {.p = p, .jobs = jobs, .job_cnt = job_cnt, .sink = sink, .max_file_cnt = MAX_FILES};
	f.progress.job_cnt = job_cnt;
	f.slots = calloc(SLOT_CNT, sizeof(*f.slots));
	struct err *e = f.slots ? NULL : &err_nomem;
	for (unsigned i = 0; i < job_cnt && !e; i++) {
		jobs[i].state = calloc(1, sizeof(*jobs[i].state));
		if (!jobs[i].state)
			e = &err_nomem;
		else if (jobs[i].is_done || jobs[i].err)
			jobs[i].state->stage = STAGE_OVER;
		if (!e && jobs[i].state->stage == STAGE_OVER)
			f.progress.done_cnt++;
	}
	if (!e)
		e = run(&f);
	p->stray_cnt = e ? 0 : f.open_cnt;
	for (unsigned i = 0; i < job_cnt; i++)
		free_state(sink, &jobs[i]);
	free(f.slots);
	return e;
}
