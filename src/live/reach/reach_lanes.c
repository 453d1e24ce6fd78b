/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several connections to one server. lldb-server escapes byte by byte, one process for each connection: what limits a transfer is one of its
 * processors, and the MD5 of the whole file takes as long as a quarter of it (measured, docs/remote.md). So large files are read over four,
 * each of which opens the file for itself and has to find the same one. Everything else goes over the first, and everything does where the
 * others do not come about, fall silent or break: nothing is lost with them but time.
 */
#include "live/reach/reach_peer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define MAX_LANES 4
#define MIN_WIDE_LEN (4u << 20) /* bytes of a file that is worth it */
#define MAX_WIDE 8		/* such files open at once */
#define MIN_PROGRESS_LEN 1024u	/* as a connection's */
#define SLICE_MS 100		/* a cancel flag is looked at as often as this */

enum lane_state { LANE_NONE, LANE_OPENING, LANE_STATTING, LANE_OPEN, LANE_FAILED };

/* A file that is read over all lanes. The first lane's descriptor is the caller's. */
struct wide {
	bool is_used, is_closed;
	uint64_t fd;
	struct reach_meta meta;
	struct {
		enum lane_state state;
		uint64_t fd;
	} at[MAX_LANES];
};

/* A request under way: the caller's, or `own`. Answers of a lane come in the order of its requests. */
struct sent {
	struct reach_req req;
	char *path;	   /* owned: of a HASH, which may have to be asked again */
	uint64_t cost_len; /* bytes that it keeps the lane busy for */
	struct wide *own;
};

struct lane {
	struct reach_conn *c;
	struct reach_peer *p; /* null: not begun, or gone */
	struct sent *sent;    /* a ring */
	size_t cap, first, cnt;
	uint64_t busy_len;
	bool is_hashing;
};

struct lanes {
	struct reach_peer base;
	struct reach_wait wait;
	struct lane lanes[MAX_LANES];
	struct wide wide[MAX_WIDE];
	bool is_begun; /* the others were tried */
	bool is_learned;
	unsigned turn;	  /* which lane is asked first for an answer */
	uint64_t old_len; /* bytes received over lanes that are gone */
};

/* --- requests --- */

static struct sent *sent_at(struct lane *l, size_t i)
{
	return &l->sent[(l->first + i) % l->cap];
}

static struct err *note_sent(struct lane *l, const struct sent *s)
{
	if (l->cnt == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct sent *all = malloc(cap * sizeof(*all));
		if (!all)
			return &err_nomem;
		for (size_t i = 0; i < l->cnt; i++)
			all[i] = *sent_at(l, i);
		free(l->sent);
		l->sent = all;
		l->cap = cap;
		l->first = 0;
	}
	l->cnt++;
	*sent_at(l, l->cnt - 1) = *s;
	l->busy_len += s->cost_len;
	l->is_hashing = l->is_hashing || s->req.op == REACH_HASH;
	return NULL;
}

/* Its path is the caller's to free. */
static struct sent pop_sent(struct lane *l)
{
	struct sent s = *sent_at(l, 0);
	l->first = (l->first + 1) % l->cap;
	l->cnt--;
	l->busy_len -= s.cost_len;
	if (s.req.op == REACH_HASH)
		l->is_hashing = false;
	return s;
}

/* Sends over lane `i` as the request stands; a failure of a lane other than the first shows when its answer is waited for. */
static struct err *send_over(struct lanes *g, unsigned i, const struct reach_req *req, struct wide *own)
{
	struct lane *l = &g->lanes[i];
	struct sent s = {.req = *req, .own = own};
	s.req.path = NULL;
	s.req.meta = NULL;
	if (req->op == REACH_READ)
		s.cost_len = req->len;
	else if (req->op == REACH_HASH)
		s.cost_len = req->len / 4;
	if (req->op == REACH_HASH && !(s.path = strdup(req->path)))
		return &err_nomem;
	struct err *e = note_sent(l, &s);
	if (e) {
		free(s.path);
		return e;
	}
	e = l->p->ops->submit(l->p, req);
	if (!e || !i || e->kind == ERR_NOMEM)
		return e;
	err_free(e);
	return NULL;
}

/* --- the other lanes --- */

static void free_lane(struct lanes *g, struct lane *l)
{
	if (l->c)
		g->old_len += reach_in_len(l->c);
	reach_peer_close(take_ptr(l->p));
	while (l->cnt)
		free(pop_sent(l).path);
	free(l->sent);
	*l = (struct lane){0};
}

/* Whether answers about it are still to come. */
static bool is_awaited(struct lanes *g, const struct wide *w)
{
	for (unsigned i = 1; i < MAX_LANES; i++) {
		for (size_t k = 0; k < g->lanes[i].cnt; k++) {
			if (sent_at(&g->lanes[i], k)->own == w)
				return true;
		}
	}
	return false;
}

/* Lane `i` is of no use any more: what was asked over it is asked over the first. */
static struct err *give_up_lane(struct lanes *g, unsigned i)
{
	struct lane was = g->lanes[i];
	struct err *e = NULL;
	g->lanes[i] = (struct lane){0};
	for (size_t k = 0; k < MAX_WIDE; k++)
		g->wide[k].at[i].state = LANE_FAILED;
	while (was.cnt) {
		struct sent s = pop_sent(&was);
		if (!s.own && !e) {
			s.req.path = s.path;
			e = send_over(g, 0, &s.req, NULL);
		}
		free(s.path);
	}
	free_lane(g, &was);
	for (size_t k = 0; k < MAX_WIDE; k++)
		g->wide[k].is_used = g->wide[k].is_used && (!g->wide[k].is_closed || is_awaited(g, &g->wide[k]));
	return e;
}

static void begin_lanes(struct lanes *g)
{
	g->is_begun = true;
	for (unsigned i = 1; i < MAX_LANES; i++) {
		struct lane *l = &g->lanes[i];
		struct reach_link link;
		struct reach_conn *c = NULL;
		struct err *e = reach_link_again(reach_conn_fd(g->lanes[0].c), &link);
		if (!e)
			e = reach_conn_begin(link, &g->wait, &c);
		if (!e)
			e = reach_peer_gdb(c, &l->p);
		if (!e)
			l->c = c;
		err_free(e);
	}
}

static struct wide *find_wide(struct lanes *g, uint64_t fd)
{
	for (size_t i = 0; i < MAX_WIDE; i++) {
		if (g->wide[i].is_used && !g->wide[i].is_closed && g->wide[i].fd == fd)
			return &g->wide[i];
	}
	return NULL;
}

/* The file of a READ, opened over the other lanes when that has not begun; null: it is read over the first alone. */
static struct err *make_wide(struct lanes *g, const struct reach_req *req, struct wide **ret)
{
	*ret = find_wide(g, req->fd);
	if (*ret || g->base.kind != REACH_LLDB || !req->meta || !req->meta->has_len || req->meta->len < MIN_WIDE_LEN)
		return NULL;
	struct wide *w = NULL;
	for (size_t i = 0; i < MAX_WIDE && !w; i++)
		w = g->wide[i].is_used ? NULL : &g->wide[i];
	if (!w)
		return NULL;
	if (!g->is_begun)
		begin_lanes(g);
	*w = (struct wide){.is_used = true, .fd = req->fd, .meta = *req->meta};
	struct err *e = NULL;
	for (unsigned i = 1; i < MAX_LANES && !e; i++) {
		if (!g->lanes[i].p)
			continue;
		w->at[i].state = LANE_OPENING;
		e = send_over(g, i, &(struct reach_req){.op = REACH_OPEN, .path = req->path, .flags = GDB_O_RDONLY}, w);
	}
	*ret = w;
	return e;
}

static bool is_open_at(const struct lanes *g, const struct wide *w, unsigned i)
{
	return g->lanes[i].p && w->at[i].state == LANE_OPEN;
}

/* The lane that has least to do. */
static struct err *read_over(struct lanes *g, const struct reach_req *req)
{
	struct wide *w;
	unsigned best = 0;
	struct err *e = make_wide(g, req, &w);
	for (unsigned i = 1; i < MAX_LANES && w && !e; i++) {
		if (is_open_at(g, w, i) && g->lanes[i].busy_len < g->lanes[best].busy_len)
			best = i;
	}
	if (e || !best)
		return e ? e : send_over(g, 0, req, NULL);
	struct reach_req own = *req;
	own.fd = w->at[best].fd;
	e = send_over(g, best, &own, NULL);
	/* Asked again it is of the first lane's file. */
	sent_at(&g->lanes[best], g->lanes[best].cnt - 1)->req.fd = req->fd;
	return e;
}

/* A lane that has nothing better to do; 0: there is none. */
static unsigned spare_lane(const struct lanes *g)
{
	unsigned best = 0;
	for (unsigned i = 1; i < MAX_LANES; i++) {
		bool is_open = false;
		for (size_t k = 0; k < MAX_WIDE; k++)
			is_open = is_open || (g->wide[k].is_used && is_open_at(g, &g->wide[k], i));
		if (is_open && !g->lanes[i].is_hashing && (!best || g->lanes[i].busy_len < g->lanes[best].busy_len))
			best = i;
	}
	return best;
}

static struct err *close_at(struct lanes *g, struct wide *w, unsigned i)
{
	w->at[i].state = LANE_NONE;
	return send_over(g, i, &(struct reach_req){.op = REACH_CLOSE, .fd = w->at[i].fd}, w);
}

static struct err *close_over(struct lanes *g, const struct reach_req *req)
{
	struct wide *w = find_wide(g, req->fd);
	struct err *e = send_over(g, 0, req, NULL);
	for (unsigned i = 1; i < MAX_LANES && w && !e; i++) {
		if (is_open_at(g, w, i))
			e = close_at(g, w, i);
	}
	if (w) {
		w->is_closed = true;
		w->is_used = is_awaited(g, w);
	}
	return e;
}

static struct err *submit(struct reach_peer *p, const struct reach_req *req)
{
	struct lanes *g = (struct lanes *)p;
	switch (req->op) {
	case REACH_READ:
		return read_over(g, req);
	case REACH_CLOSE:
		return close_over(g, req);
	case REACH_HASH:
		return send_over(g, spare_lane(g), req, NULL);
	case REACH_LOOK:
	case REACH_OPEN:
	case REACH_STAT:
	case REACH_WRITE:
	case REACH_UNLINK:
	case REACH_SHA256:
		break;
	}
	return send_over(g, 0, req, NULL);
}

/* --- answers --- */

static bool is_same_file(const struct reach_meta *a, const struct reach_meta *b)
{
	return b->has_len && a->len == b->len && a->has_mtime == b->has_mtime && a->mtime == b->mtime && a->dev == b->dev && a->ino == b->ino;
}

/* An answer to what was asked on the way to a file. */
static struct err *own_answered(struct lanes *g, unsigned i, const struct sent *s, const struct reach_answer *a)
{
	struct wide *w = s->own;
	struct err *e = NULL;
	switch (s->req.op) {
	case REACH_OPEN:
		w->at[i].state = a->os_errno ? LANE_FAILED : LANE_STATTING;
		w->at[i].fd = a->value;
		if (!a->os_errno)
			e = w->is_closed ? close_at(g, w, i)
					 : send_over(g, i, &(struct reach_req){.op = REACH_STAT, .fd = a->value}, w);
		break;
	case REACH_STAT:
		w->at[i].state = !a->os_errno && is_same_file(&w->meta, &a->meta) ? LANE_OPEN : LANE_FAILED;
		if (w->is_closed || w->at[i].state == LANE_FAILED)
			e = close_at(g, w, i);
		break;
	case REACH_CLOSE:
	case REACH_LOOK:
	case REACH_READ:
	case REACH_WRITE:
	case REACH_UNLINK:
	case REACH_HASH:
	case REACH_SHA256:
		break;
	}
	if (w->is_closed)
		w->is_used = is_awaited(g, w);
	return e;
}

/* What the caller sees of the peer. */
static void tell(struct lanes *g)
{
	const struct reach_peer *first = g->lanes[0].p;
	struct reach_peer was = g->base;
	g->base = *first;
	g->base.ops = was.ops;
	g->base.stray_cnt = was.stray_cnt;
	g->base.window_len = was.window_len;
	/* The caller may have found that there is none. */
	if (g->is_learned)
		g->base.hash = was.hash;
	g->is_learned = true;
	g->base.wire_len += g->old_len;
	for (unsigned i = 1; i < MAX_LANES; i++)
		g->base.wire_len += g->lanes[i].p ? g->lanes[i].p->wire_len : 0;
	g->base.has_spare = spare_lane(g) != 0;
}

/* Takes the answer that has come over lane `i`; `*ret_is_theirs`: it is the caller's. */
static struct err *take(struct lanes *g, unsigned i, struct reach_answer *ret, bool *ret_is_theirs)
{
	struct lane *l = &g->lanes[i];
	struct err *e = l->p->ops->next(l->p, ret);
	if (e)
		return e;
	if (!l->cnt)
		return err_new(ERR_INTERNAL, "an answer to nothing");
	struct sent s = pop_sent(l);
	free(s.path);
	*ret_is_theirs = !s.own;
	return s.own ? own_answered(g, i, &s, ret) : NULL;
}

/* Looks once at each lane, those after the last that gave something first. */
static struct err *look_around(struct lanes *g, struct reach_answer *ret, bool *ret_is_there)
{
	for (unsigned k = 0; k < MAX_LANES; k++) {
		unsigned i = (g->turn + k) % MAX_LANES;
		for (bool is_ready = true; is_ready && g->lanes[i].p;) {
			struct err *e = reach_is_ready(g->lanes[i].c, &is_ready);
			if (!e && is_ready)
				e = take(g, i, ret, ret_is_there);
			if (e && i && e->kind != ERR_NOMEM && e->kind != ERR_CANCELLED) {
				err_free(e);
				e = give_up_lane(g, i);
				is_ready = false;
			}
			if (e)
				return e;
			if (*ret_is_there) {
				g->turn = (i + 1) % MAX_LANES;
				return NULL;
			}
		}
	}
	return NULL;
}

static bool has_others(const struct lanes *g)
{
	for (unsigned i = 1; i < MAX_LANES; i++) {
		if (g->lanes[i].p)
			return true;
	}
	return false;
}

static uint64_t in_len(const struct lanes *g)
{
	uint64_t len = g->old_len;
	for (unsigned i = 0; i < MAX_LANES; i++)
		len += g->lanes[i].p ? reach_in_len(g->lanes[i].c) : 0;
	return len;
}

/* Waits until something can be read or written, a little while at most. */
static struct err *wait_around(const struct lanes *g)
{
	struct pollfd polls[MAX_LANES];
	nfds_t cnt = 0;
	for (unsigned i = 0; i < MAX_LANES; i++) {
		if (!g->lanes[i].p)
			continue;
		short events = (short)(POLLIN | (reach_is_sending(g->lanes[i].c) ? POLLOUT : 0));
		polls[cnt++] = (struct pollfd){.fd = reach_conn_fd(g->lanes[i].c), .events = events};
	}
	if (poll(polls, cnt, SLICE_MS) < 0 && errno != EINTR)
		return err_os(errno, "waiting for the other machine");
	return g->wait.cancel && atomic_load(g->wait.cancel) ? err_new(ERR_CANCELLED, "cancelled") : NULL;
}

static struct err *next(struct reach_peer *p, struct reach_answer *ret)
{
	struct lanes *g = (struct lanes *)p;
	uint64_t stall_ns = reach_stall_ns(&g->wait), until_ns = reach_now_ns() + stall_ns, mark_len = in_len(g);
	for (bool is_there = false;;) {
		struct err *e = has_others(g) ? look_around(g, ret, &is_there) : take(g, 0, ret, &is_there);
		if (e)
			return e;
		tell(g);
		if (is_there)
			return NULL;
		e = wait_around(g);
		if (e)
			return e;
		if (in_len(g) - mark_len >= MIN_PROGRESS_LEN) {
			mark_len = in_len(g);
			until_ns = reach_now_ns() + stall_ns;
		} else if (reach_now_ns() >= until_ns) {
			/* The first may do better alone; its own end to silence begins now. */
			for (unsigned i = 1; i < MAX_LANES && !e; i++)
				e = g->lanes[i].p ? give_up_lane(g, i) : NULL;
			if (e)
				return e;
		}
	}
}

static struct err *flush(struct reach_peer *p)
{
	struct lanes *g = (struct lanes *)p;
	struct err *e = NULL;
	for (unsigned i = 0; i < MAX_LANES && !e; i++)
		e = g->lanes[i].p ? g->lanes[i].p->ops->flush(g->lanes[i].p) : NULL;
	return e;
}

static void lanes_free(struct reach_peer *p)
{
	struct lanes *g = (struct lanes *)p;
	for (unsigned i = 0; i < MAX_LANES; i++)
		free_lane(g, &g->lanes[i]);
	free(g);
}

struct err *reach_peer_lanes(struct reach_conn *c, const struct reach_wait *wait, struct reach_peer **ret)
{
	static const struct reach_peer_ops ops = {.submit = submit, .next = next, .flush = flush, .free = lanes_free};
	struct lanes *g = calloc(1, sizeof(*g));
	if (!g) {
		reach_conn_free(c);
		return &err_nomem;
	}
	struct err *e = reach_peer_gdb(c, &g->lanes[0].p);
	if (e) {
		free(g);
		return e;
	}
	g->lanes[0].c = c;
	g->wait = *wait;
	g->base = *g->lanes[0].p;
	g->base.ops = &ops;
	*ret = &g->base;
	return NULL;
}
