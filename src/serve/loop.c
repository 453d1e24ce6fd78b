/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop: one thread, its connections, one wait for all of them. The first one also looks at what happens to the databases, and takes the
 * signals.
 */
#include "serve/serve_int.h"

#include "rpc/sock.h"
#include "serve/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define READ_LEN 65536
#define READS_MAX 8              /* of one connection before the others have their turn */
#define EVENTS_MAX 64
#define AGAIN_NS 100000000ull    /* until accepting is tried again when descriptors ran out */
#define TOKEN_NS 10000000000ull

void serve_loop_init(struct serve_loop *l, struct serve *s, unsigned no)
{
	*l = (struct serve_loop){.wake_src = SERVE_WAKE, .serve = s, .no = no, .epoll_fd = -1, .wake_fd = -1};
	pthread_mutex_init(&l->lock, NULL);
}

static void put_away(struct serve_loop *l, struct serve_req *r)
{
	if (r->work == SERVE_WORK_OPEN && r->db)
		serve_db_close(r->db);
	serve_req_free(r);
}

static void free_conn(struct serve_conn *c)
{
	serve_tls_free(c->tls);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

void serve_loop_fini(struct serve_loop *l)
{
	for (struct serve_req *r = serve_pool_take(l), *next; r; r = next) {
		next = r->pool_next;
		put_away(l, r);
	}
	while (l->free_reqs) {
		struct serve_req *r = l->free_reqs;
		l->free_reqs = r->next;
		arena_fini(&r->arena);
		free(r);
	}
	buf_fini(&l->spare);
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
}

void serve_loop_wake(struct serve_loop *l)
{
	uint64_t one = 1;
	if (l->wake_fd >= 0 && !atomic_exchange(&l->is_woken, true) && write(l->wake_fd, &one, sizeof(one)) < 0) {
		/* EAGAIN: it is readable already. */
	}
}

void serve_loop_due(struct serve_loop *l, uint64_t at_ns)
{
	if (at_ns && (!l->due_ns || at_ns < l->due_ns))
		l->due_ns = at_ns;
}

/* --- connections ------------------------------------------------------------------------------------------------------- */

static void make_ready(struct serve_loop *l, struct serve_conn *c)
{
	if (c->is_ready || c->fd < 0)
		return;
	c->is_ready = true;
	c->ready_next = l->ready;
	l->ready = c;
}

static void conn_close(struct serve_loop *l, struct serve_conn *c)
{
	if (c->next)
		c->next->prev = c->prev;
	if (c->prev)
		c->prev->next = c->next;
	else
		l->conns = c->next;
	serve_conn_fini(c);
	/* Closing takes it out only when nobody else has the socket, and a child that is about to become another program does. */
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	c->fd = -1;
	atomic_fetch_sub(&l->conn_cnt, 1);
	atomic_fetch_sub(&l->serve->conn_cnt, 1);
	/* An event of this turn may still point at it. */
	c->next = l->dead;
	l->dead = c;
}

static void bury(struct serve_loop *l)
{
	while (l->dead) {
		struct serve_conn *c = l->dead;
		l->dead = c->next;
		free_conn(c);
	}
}

static ssize_t io_recv(struct serve_conn *c, char *bytes, size_t len)
{
	return c->tls ? serve_tls_recv(c->tls, bytes, len) : recv(c->fd, bytes, len, MSG_DONTWAIT);
}

static ssize_t io_send(struct serve_conn *c, const char *bytes, size_t len)
{
	return c->tls ? serve_tls_send(c->tls, bytes, len) : send(c->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Nobody takes its answers any more. What it sent before is read still, by make_ready(), since epoll would tell of the end again and again. */
static void hang(struct serve_conn *c)
{
	if (c->is_hung)
		return;
	epoll_ctl(c->loop->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	c->watched = EPOLLIN;
	serve_conn_hang(c);
	if (!c->is_ended)
		make_ready(c->loop, c);
}

/* True when there may be more to read at once. */
static bool conn_read(struct serve_conn *c)
{
	char bytes[READ_LEN];
	size_t room;
	for (int i = 0; i < READS_MAX; i++) {
		if (!(room = serve_conn_room(c)))
			return false;
		size_t want = MIN(room, sizeof(bytes));
		ssize_t n = io_recv(c, bytes, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			serve_conn_end(c);
			if (n < 0)
				hang(c);
			return false;
		}
		serve_conn_feed(c, bytes, (size_t)n);
		/* Less than what was asked for: that was all. */
		if ((size_t)n < want && !c->tls && !c->is_hung)
			return false;
		/* Lines are worked on before more of them come. */
		if (c->lines.in.len - c->lines.at >= READ_LEN && memrchr(c->lines.in.data + c->lines.at, '\n', c->lines.in.len - c->lines.at))
			return true;
	}
	return true;
}

static void conn_send(struct serve_conn *c)
{
	serve_conn_took(c, 0);
	while (c->outs.cnt && !c->is_gone && !c->is_hung) {
		struct buf *b = &c->outs.data[0];
		if (b->failed) {
			c->is_gone = true;
			return;
		}
		ssize_t n = io_send(c, b->data + c->sent, b->len - c->sent);
		if (n >= 0)
			serve_conn_took(c, (size_t)n);
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR)
			hang(c);
	}
	while (c->is_hung && c->outs.cnt)
		serve_conn_took(c, c->outs.data[0].len - c->sent);
}

static void watch(struct serve_loop *l, struct serve_conn *c)
{
	uint32_t want = (serve_conn_room(c) ? EPOLLIN : 0u) | (c->outs.cnt ? EPOLLOUT : 0u);
	if (c->tls && serve_tls_wants_write(c->tls))
		want |= EPOLLOUT;
	if (want == c->watched || c->is_hung)
		return;
	struct epoll_event ev = {.events = want, .data = {.ptr = &c->src}};
	epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
	c->watched = want;
}

static void conn_run(struct serve_loop *l, struct serve_conn *c)
{
	bool is_more = serve_conn_step(c);
	bool was_full = serve_conn_unsent(c) >= SERVE_UNSENT_MAX;
	conn_send(c);
	is_more |= was_full && serve_conn_unsent(c) < SERVE_UNSENT_MAX;
	if (serve_conn_is_over(c)) {
		conn_close(l, c);
		return;
	}
	if (is_more || (c->is_hung && !c->is_ended && serve_conn_room(c)))
		make_ready(l, c);
	watch(l, c);
}

static void conn_event(struct serve_loop *l, struct serve_conn *c, uint32_t events)
{
	bool is_more = false;
	if (c->fd < 0)
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) || c->tls)
		is_more = conn_read(c);
	/* It is not there any more, and what it may have sent before is not wanted. */
	if (events & (EPOLLHUP | EPOLLERR) && !serve_conn_room(c) && !c->is_ended)
		c->is_gone = true;
	if (events & EPOLLERR || (events & EPOLLHUP && c->is_ended))
		hang(c);
	conn_run(l, c);
	if (is_more && c->fd >= 0)
		make_ready(l, c);
}

static void run_ready(struct serve_loop *l)
{
	struct serve_conn *c = l->ready;
	l->ready = NULL;
	while (c) {
		struct serve_conn *next = c->ready_next;
		c->is_ready = false;
		if (c->fd >= 0) {
			bool is_more = c->watched & EPOLLIN && conn_read(c);
			if (c->is_hung && !c->is_ended && !is_more && serve_conn_room(c))
				c->is_gone = true; /* no end comes, and epoll is not asked */
			conn_run(l, c);
			if (is_more && c->fd >= 0)
				make_ready(l, c);
		}
		c = next;
	}
}

static void attach(struct serve_loop *l, struct serve_conn *c)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = &c->src}};
	c->watched = EPOLLIN;
	c->next = l->conns;
	if (l->conns)
		l->conns->prev = c;
	l->conns = c;
	if (c->needs_token) {
		c->token_due_ns = serve_now_ns() + TOKEN_NS;
		serve_loop_due(l, c->token_due_ns);
	}
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev))
		conn_close(l, c);
}

/* --- accepting ------------------------------------------------------------------------------------------------------------ */

/* Says why, and closes. */
static void turn_away(int fd, bool is_plain)
{
	static const char busy[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"too many connections\","
				   "\"data\":{\"kind\":\"busy\",\"fix\":\"close one, or try again\"}}}\n";
	if (is_plain)
		(void)!send(fd, busy, sizeof(busy) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* Every loop waits for clients, and the kernel wakes one: whoever accepts a connection mostly keeps it, so that its first request waits for
 * no other thread. Handing each over cost half of the time from connect to the first answer. */
bool serve_loop_listen(struct serve_loop *l, bool is_on)
{
	struct serve *s = l->serve;
	bool good = true;
	const struct { int fd; enum serve_src *src; } all[] = {{s->listen_fd, &s->listener_src}, {s->tls_fd, &s->tls_listener_src}};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct epoll_event ev = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data = {.ptr = all[i].src}};
		if (all[i].fd >= 0)
			good &= !epoll_ctl(l->epoll_fd, is_on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, all[i].fd, &ev);
	}
	return good;
}

/* There is no descriptor left: the one kept for this is given to whoever waits, to be told. */
static void out_of_fds(struct serve_loop *l, int listener)
{
	struct serve *s = l->serve;
	pthread_mutex_lock(&s->lock);
	if (s->reserve_fd >= 0) {
		close(s->reserve_fd);
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			turn_away(fd, listener == s->listen_fd);
		s->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	pthread_mutex_unlock(&s->lock);
	(void)serve_loop_listen(l, false);
	l->listen_again_ns = l->now_ns + AGAIN_NS;
	serve_loop_due(l, l->listen_again_ns);
}

/* The one that has the fewest, but for one more or less this one. */
static struct serve_loop *choose_loop(struct serve_loop *here)
{
	struct serve *s = here->serve;
	struct serve_loop *l = here;
	for (unsigned i = 0; i < s->loop_cnt; i++) {
		if (atomic_load(&s->loops[i].conn_cnt) + (l == here) < atomic_load(&l->conn_cnt))
			l = &s->loops[i];
	}
	return l;
}

/* False: there is no memory for it. */
static bool take_client(struct serve_loop *here, int fd, bool is_tls)
{
	struct serve_loop *l = choose_loop(here);
	struct serve_conn *c = calloc(1, sizeof(*c));
	if (!c)
		return false;
	serve_conn_init(c, l);
	c->fd = fd;
	if (is_tls && !(c->tls = serve_tls_new(l->serve->tls, fd))) {
		free(c);
		return false;
	}
	if (is_tls) {
		c->needs_token = true;
		c->lines.max = 4096;
	}
	atomic_fetch_add(&l->conn_cnt, 1);
	if (l == here) {
		attach(l, c);
		/* What it asks is mostly there already. */
		make_ready(l, c);
		return true;
	}
	pthread_mutex_lock(&l->lock);
	c->ready_next = l->arrived;
	l->arrived = c;
	pthread_mutex_unlock(&l->lock);
	serve_loop_wake(l);
	return true;
}

static void accept_clients(struct serve_loop *l, int listener)
{
	struct serve *s = l->serve;
	bool is_tls = listener == s->tls_fd;
	for (int i = 0; i < EVENTS_MAX; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			out_of_fds(l, listener);
		if (fd < 0 && errno != ECONNABORTED && errno != EINTR)
			return;
		if (fd < 0)
			continue;
		if (!is_tls && !rpc_is_peer_ours(fd)) {
			close(fd);
			continue;
		}
		if (atomic_fetch_add(&s->conn_cnt, 1) >= s->conn_max || !take_client(l, fd, is_tls)) {
			atomic_fetch_sub(&s->conn_cnt, 1);
			turn_away(fd, !is_tls);
		}
	}
}

/* --- databases ------------------------------------------------------------------------------------------------------------ */

/* Loop 0 watches them; which ones, it finds out by itself. */
void serve_watch_db(struct serve *s, struct serve_db *db)
{
	atomic_fetch_add(&db->news, 1);
	atomic_fetch_add(&s->news, 1);
	serve_loop_wake(&s->loops[0]);
}

static void watch_fd(struct serve_loop *l, int op, int fd, enum serve_src *src)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = src}};
	if (fd >= 0)
		epoll_ctl(l->epoll_fd, op, fd, &ev);
}

static void watch_one(struct serve_loop *l, struct serve_db *db)
{
	if (db->is_watched)
		return;
	int fd = ses_watch_fd(db->ses);
	watch_fd(l, EPOLL_CTL_ADD, fd, &db->watch_src);
	db->is_watched = fd >= 0;
	/* What was committed before it was watched. */
	if (fd >= 0)
		serve_refresh_later(l, db);
}

void serve_refresh_later(struct serve_loop *l, struct serve_db *db)
{
	struct serve_req *r = atomic_exchange(&db->refreshing, true) ? NULL : serve_req_new(l);
	if (!r)
		return;
	r->work = SERVE_WORK_REFRESH;
	r->db = serve_db_ref(db);
	serve_pool_add(l->serve->pool, r);
}

/* Those that came and went since. */
static void watch_dbs(struct serve_loop *l)
{
	struct serve *s = l->serve;
	struct serve_db **all = alloc_array(SERVE_DB_MAX, sizeof(struct serve_db *));
	if (!all)
		return;
	size_t cnt = serve_db_all(s, all);
	for (size_t i = 0; i < s->watched.cnt;) {
		struct serve_db *db = s->watched.data[i];
		size_t k = 0;
		while (k < cnt && all[k] != db)
			k++;
		if (k < cnt) {
			watch_one(l, db);
			i++;
			continue;
		}
		watch_fd(l, EPOLL_CTL_DEL, ses_event_fd(db->ses), NULL);
		if (db->is_watched)
			watch_fd(l, EPOLL_CTL_DEL, ses_watch_fd(db->ses), NULL);
		s->watched.data[i] = s->watched.data[--s->watched.cnt];
		if (!VEC_PUSH(&s->unwatched, db))
			serve_db_unref(db);
	}
	for (size_t k = 0; k < cnt; k++) {
		size_t i = 0;
		while (i < s->watched.cnt && s->watched.data[i] != all[k])
			i++;
		if (i < s->watched.cnt || !VEC_PUSH(&s->watched, all[k]))
			continue;
		serve_db_ref(all[k]);
		watch_fd(l, EPOLL_CTL_ADD, ses_event_fd(all[k]->ses), &all[k]->event_src);
		watch_one(l, all[k]);
	}
	for (size_t k = 0; k < cnt; k++)
		serve_db_unref(all[k]);
	free(all);
}

static void wake_all(struct serve *s)
{
	for (unsigned i = 0; i < s->loop_cnt; i++)
		serve_loop_wake(&s->loops[i]);
}

/* Its state or revision changed. */
static void db_event(struct serve_loop *l, struct serve_db *db)
{
	uint64_t cnt;
	(void)!read(ses_event_fd(db->ses), &cnt, sizeof(cnt));
	watch_one(l, db);
	atomic_fetch_add(&db->news, 1);
	atomic_fetch_add(&l->serve->news, 1);
	wake_all(l->serve);
}

/* --- turns ------------------------------------------------------------------------------------------------------------------ */

static void take_arrived(struct serve_loop *l)
{
	pthread_mutex_lock(&l->lock);
	struct serve_conn *c = l->arrived;
	l->arrived = NULL;
	pthread_mutex_unlock(&l->lock);
	while (c) {
		struct serve_conn *next = c->ready_next;
		attach(l, c);
		c = next;
	}
}

static void take_done(struct serve_loop *l)
{
	for (struct serve_req *r = serve_pool_take(l), *next; r; r = next) {
		next = r->pool_next;
		struct serve_conn *c = r->conn;
		if (!c) {
			put_away(l, r);
			continue;
		}
		serve_conn_done(c, r);
		make_ready(l, c);
	}
}

static void woken(struct serve_loop *l)
{
	uint64_t cnt;
	(void)!read(l->wake_fd, &cnt, sizeof(cnt));
	atomic_store(&l->is_woken, false);
	take_arrived(l);
	take_done(l);
	uint64_t news = atomic_load(&l->serve->news);
	if (news == l->news)
		return;
	l->news = news;
	if (!l->no)
		watch_dbs(l);
	serve_loop_due(l, 1);
}

static void event(struct serve_loop *l, const struct epoll_event *ev)
{
	struct serve *s = l->serve;
	struct signalfd_siginfo info;
	enum serve_src *src = ev->data.ptr;
	switch (*src) {
	case SERVE_CONN:
		conn_event(l, (struct serve_conn *)((char *)src - offsetof(struct serve_conn, src)), ev->events);
		break;
	case SERVE_WAKE:
		woken(l);
		break;
	case SERVE_LISTENER:
		accept_clients(l, s->listen_fd);
		break;
	case SERVE_TLS_LISTENER:
		accept_clients(l, s->tls_fd);
		break;
	case SERVE_SIGNAL:
		(void)!read(s->signal_fd, &info, sizeof(info));
		atomic_store(&s->stop, true);
		wake_all(s);
		break;
	case SERVE_DB_EVENT:
		db_event(l, (struct serve_db *)((char *)src - offsetof(struct serve_db, event_src)));
		break;
	case SERVE_DB_WATCH: {
		struct serve_db *db = (struct serve_db *)((char *)src - offsetof(struct serve_db, watch_src));
		ses_watch_clear(db->ses);
		serve_refresh_later(l, db);
		break;
	}
	}
}

static void tick(struct serve_loop *l)
{
	uint64_t due = 0;
	if (!l->due_ns || l->now_ns < l->due_ns)
		return;
	l->due_ns = 0;
	for (struct serve_conn *c = l->conns, *next; c; c = next) {
		next = c->next;
		if (!c->first && !c->subs.cnt && !c->needs_token)
			continue;
		uint64_t at = serve_conn_tick(c);
		due = !at ? due : !due ? at : MIN(at, due);
		make_ready(l, c);
	}
	if (l->listen_again_ns && l->now_ns >= l->listen_again_ns) {
		l->listen_again_ns = 0;
		(void)serve_loop_listen(l, true);
	} else {
		serve_loop_due(l, l->listen_again_ns);
	}
	serve_loop_due(l, due);
}

static void close_unwatched(struct serve_loop *l)
{
	struct serve *s = l->serve;
	while (!l->no && s->unwatched.cnt)
		serve_db_unref(VEC_POP(&s->unwatched));
}

void serve_loop_run(struct serve_loop *l)
{
	struct epoll_event events[EVENTS_MAX];
	l->now_ns = serve_now_ns();
	while (!atomic_load_explicit(&l->serve->stop, memory_order_relaxed)) {
		int wait = -1;
		if (l->ready)
			wait = 0;
		else if (l->due_ns)
			wait = l->due_ns <= l->now_ns ? 0 : (int)MIN((l->due_ns - l->now_ns) / 1000000 + 1, 60000u);
		int n = epoll_wait(l->epoll_fd, events, EVENTS_MAX, wait);
		l->now_ns = serve_now_ns();
		for (int i = 0; i < n; i++)
			event(l, &events[i]);
		tick(l);
		run_ready(l);
		bury(l);
		close_unwatched(l);
	}
	while (l->conns)
		conn_close(l, l->conns);
	bury(l);
}
