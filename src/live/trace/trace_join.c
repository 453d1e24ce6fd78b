/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/trace_join.h"

#include "live/trace/sysc.h"
#include "live/trace/trace_decode.h"
#include "live/trace/trace_frame.h"
#include "live/trace/trace_seed.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#include <string.h>

/* A call that has begun. */
struct pending {
	uint8_t *rec; /* its record, owned; null: none */
	uint32_t len;
	uint32_t miss_cnt; /* of the join when it began: if records are missing since, its end may be */
};

struct thread {
	uint32_t tid, tgid, ppid;
	bool is_gone;   /* it has ended: its number may be another's */
	uint8_t comm_len;
	char comm[16];
	const char *exe, *container; /* in the arena */
	uint64_t cgroup; /* trace_seed_key() */
	struct trace_wire_proc proc;
	struct pending pending;
};

struct cpu {
	uint64_t next;   /* number its next record has; 0: nothing is known of it */
	bool is_damaged; /* records up to its next one may be missing from the file */
};

struct trace_join {
	trace_sink_fn *sink;
	void *ctx;
	bool is_done;       /* the sink wants no more */
	bool has_begun;     /* there were events */
	VEC(struct thread) threads;
	struct map by_tid;
	struct map by_text; /* hash of a text to its index in texts */
	VEC(const char *) texts;
	struct map by_cgroup; /* container of a cgroup */
	struct arena arena;
	struct cpu *cpus;
	struct trace_totals totals;
	uint32_t miss_cnt;  /* places where records are missing */
	bool failed;        /* memory ran out */
	struct trace_record record, begun;
	struct trace_slot merged[TRACE_SLOT_MAX];
};

struct trace_join *trace_join_new(trace_sink_fn *sink, void *ctx)
{
	struct trace_join *j = calloc(1, sizeof(*j));
	struct cpu *cpus = calloc(TRACE_CPUS, sizeof(*cpus));
	if (!j || !cpus) {
		free(j);
		free(cpus);
		return NULL;
	}
	j->sink = sink;
	j->ctx = ctx;
	j->cpus = cpus;
	return j;
}

void trace_join_free(struct trace_join *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->threads.cnt; i++)
		free(j->threads.data[i].pending.rec);
	VEC_FREE(&j->threads);
	VEC_FREE(&j->texts);
	map_fini(&j->by_tid);
	map_fini(&j->by_text);
	map_fini(&j->by_cgroup);
	arena_fini(&j->arena);
	free(j->cpus);
	free(j);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static struct thread *find_thread(struct trace_join *j, uint32_t tid)
{
	uint32_t idx;
	return map_find(&j->by_tid, tid, &idx) ? &j->threads.data[idx] : NULL;
}

/* The thread with that number, made anew when there was none or it has ended; null when memory is out. */
static struct thread *make_thread(struct trace_join *j, uint32_t tid)
{
	struct thread *t = find_thread(j, tid);
	if (!t) {
		if (!VEC_PUSH(&j->threads, (struct thread){.tid = tid}) || !map_put(&j->by_tid, tid, (uint32_t)(j->threads.cnt - 1))) {
			j->failed = true;
			return NULL;
		}
		return &j->threads.data[j->threads.cnt - 1];
	}
	if (t->is_gone) {
		free(t->pending.rec);
		*t = (struct thread){.tid = tid};
	}
	return t;
}

static const char *intern(struct trace_join *j, const uint8_t *bytes, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	uint32_t idx;
	if (map_find(&j->by_text, hash, &idx) && strlen(j->texts.data[idx]) == len && !memcmp(j->texts.data[idx], bytes, len))
		return j->texts.data[idx];
	const char *s = arena_strndup(&j->arena, (const char *)bytes, len);
	if (!s || !VEC_PUSH(&j->texts, s) || !map_put(&j->by_text, hash, (uint32_t)(j->texts.cnt - 1)))
		j->failed = true;
	return s;
}

static void set_comm(struct thread *t, const char *comm)
{
	memset(t->comm, 0, sizeof(t->comm));
	memcpy(t->comm, comm, strnlen(comm, sizeof(t->comm) - 1));
	t->comm_len = (uint8_t)strlen(t->comm);
}

/* What a record says of a thread and its process. */
static void learn(struct trace_join *j, struct thread *t, const struct trace_record *r)
{
	if (r->has_proc) {
		t->proc = r->proc;
		t->tgid = r->proc.tgid;
		t->ppid = r->proc.ppid;
		set_comm(t, r->proc.comm);
		if (trace_seed_key(&r->proc) != t->cgroup) {
			t->cgroup = trace_seed_key(&r->proc);
			uint32_t idx;
			t->container = map_find(&j->by_cgroup, t->cgroup, &idx) ? j->texts.data[idx] : NULL;
		}
	}
	for (uint32_t i = 0; i < r->ev.nslots; i++) {
		const struct trace_slot *s = &r->slots[i];
		if (s->arg == TRACE_ARG_EXE && s->len && s->status == TRACE_OK)
			t->exe = intern(j, s->data, strnlen((const char *)s->data, s->len));
	}
	if (r->container_len) {
		t->container = intern(j, r->container, strnlen((const char *)r->container, r->container_len));
		/* intern() has put it last or found it: its index is looked up by the same hash. */
		for (uint32_t i = 0; t->cgroup && i < j->texts.cnt; i++) {
			if (j->texts.data[i] == t->container && !map_put(&j->by_cgroup, t->cgroup, i))
				j->failed = true;
		}
	}
}

static void forget_pending(struct thread *t)
{
	free(t->pending.rec);
	t->pending = (struct pending){0};
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void give(struct trace_join *j, struct trace_event *ev)
{
	const struct thread *t = find_thread(j, ev->tid);
	if (t && ev->kind != TRACE_LOST) {
		ev->pid = t->tgid;
		ev->ppid = t->ppid;
		ev->comm = t->comm_len ? t->comm : NULL;
		ev->exe = t->exe;
		ev->container = t->container;
	}
	j->has_begun = true;
	if (!j->is_done && !j->sink(j->ctx, ev))
		j->is_done = true;
}

/* A CPU's numbers up to `last` have been given: those between are lost. */
static void miss(struct trace_join *j, uint16_t cpu, uint64_t first, uint64_t last, uint64_t time)
{
	bool is_damaged = j->cpus[cpu % TRACE_CPUS].is_damaged;
	struct trace_event ev = {.kind = TRACE_LOST, .cpu = cpu, .time = time,
		.lost = {.count = last - first + 1, .first = first, .last = last, .reason = is_damaged ? TRACE_LOST_FILE : TRACE_LOST_RING}};
	j->totals.lost += ev.lost.count;
	j->miss_cnt++;
	give(j, &ev);
}

/* Takes the number of a record into account; gives it in full. */
static uint64_t number(struct trace_join *j, uint16_t cpu, uint32_t seq, uint64_t time)
{
	struct cpu *c = &j->cpus[cpu % TRACE_CPUS];
	uint64_t next = c->next ? c->next : 1;
	int32_t ahead = (int32_t)(seq - (uint32_t)next);
	if (ahead < 0) /* of damaged input: the kernel gives numbers in order */
		return (uint64_t)((int64_t)next + ahead);
	uint64_t full = next + (uint64_t)ahead;
	if (ahead)
		miss(j, cpu, next, full - 1, time);
	c->next = full + 1;
	c->is_damaged = false;
	return full;
}

static void take_numbers(struct trace_join *j, uint64_t cpu, uint64_t last, bool is_file)
{
	struct cpu *c = &j->cpus[cpu % TRACE_CPUS];
	c->is_damaged = c->is_damaged || is_file;
	uint64_t next = c->next ? c->next : 1;
	if (last < next || last > UINT64_MAX / 2)
		return;
	if (j->has_begun || c->next)
		miss(j, (uint16_t)cpu, next, last, 0);
	c->next = last + 1;
}

static const struct trace_slot *find_slot(const struct trace_event *ev, const struct trace_slot *like)
{
	for (uint32_t i = 0; i < ev->nslots; i++) {
		if (ev->slots[i].arg == like->arg && ev->slots[i].part == like->part)
			return &ev->slots[i];
	}
	return NULL;
}

/* An input that was read when the call began and when it had ended. */
static void merge_slot(struct trace_slot *end, const struct trace_slot *begun)
{
	bool was_read = begun->status == TRACE_OK || begun->status == TRACE_TRUNCATED;
	if (end->phase != TRACE_IN || !was_read)
		return;
	bool same = begun->len == end->len && (!end->len || !memcmp(begun->data, end->data, end->len));
	uint8_t status = same ? begun->status : TRACE_RACED;
	*end = *begun;
	end->status = status;
}

/* The beginning of the call the thread is in, in j->begun; false: it is not known. */
static bool read_pending(struct trace_join *j, const struct thread *t)
{
	const struct pending *p = &t->pending;
	return p->rec && p->miss_cnt == j->miss_cnt && trace_decode(p->rec, p->len, &j->begun);
}

/* rt_sigreturn(2) and execveat(2) put other registers in the place of those they were called with, their number among them; a program of
 * another abi has another number for exec. */
static void restore_number(struct trace_join *j, const struct thread *t, struct trace_event *ev)
{
	bool is_exec = !ev->ret && sysc_is_exec(ev->abi, ev->nr);
	if ((ev->nr != -1 && !is_exec) || !read_pending(j, t))
		return;
	const struct trace_event *begun = &j->begun.ev;
	if (is_exec != sysc_is_exec(begun->abi, begun->nr))
		return;
	ev->nr = begun->nr;
	ev->abi = begun->abi;
	memcpy(ev->args, begun->args, sizeof(ev->args));
}

/* Joins the end of a call with its beginning. */
static void join_call(struct trace_join *j, const struct thread *t, struct trace_event *ev)
{
	if (!read_pending(j, t) || j->begun.ev.nr != ev->nr || j->begun.ev.abi != ev->abi)
		return;
	const struct trace_event *begun = &j->begun.ev;
	if (!ev->ns && ev->time > begun->time)
		ev->ns = ev->time - begun->time;
	/* A program that was replaced took registers and memory with it. */
	if (!ev->ret && sysc_is_exec(ev->abi, ev->nr)) {
		ev->slots = begun->slots;
		ev->nslots = begun->nslots;
		return;
	}
	memcpy(j->merged, ev->slots, ev->nslots * sizeof(*ev->slots));
	for (uint32_t i = 0; i < ev->nslots; i++) {
		const struct trace_slot *s = find_slot(begun, &j->merged[i]);
		if (s)
			merge_slot(&j->merged[i], s);
	}
	ev->slots = j->merged;
}

static void keep(struct trace_join *j, struct thread *t, const uint8_t *rec, uint32_t len)
{
	forget_pending(t);
	t->pending.rec = malloc(len);
	if (!t->pending.rec) {
		j->failed = true;
		return;
	}
	memcpy(t->pending.rec, rec, len);
	t->pending.len = len;
	t->pending.miss_cnt = j->miss_cnt;
}

static void take_call(struct trace_join *j, const uint8_t *rec, uint32_t len)
{
	struct trace_event *ev = &j->record.ev;
	struct thread *t = ev->unfinished ? make_thread(j, ev->tid) : find_thread(j, ev->tid);
	if (t && !ev->unfinished) {
		restore_number(j, t, ev);
		join_call(j, t, ev);
	}
	give(j, ev);
	if (!t)
		return;
	if (ev->unfinished)
		keep(j, t, rec, len);
	else
		forget_pending(t);
}

static void take_fork(struct trace_join *j)
{
	const struct trace_record *r = &j->record;
	struct thread *child = make_thread(j, (uint32_t)r->ev.ret), *parent = find_thread(j, r->ev.tid);
	if (child) {
		forget_pending(child);
		if (parent && parent != child) {
			child->exe = parent->exe;
			child->container = parent->container;
			child->cgroup = parent->cgroup;
		}
		learn(j, child, r);
	}
	give(j, &j->record.ev);
}

static void take_exec(struct trace_join *j)
{
	struct trace_event *ev = &j->record.ev;
	uint32_t old = (uint32_t)ev->args[0];
	struct thread *t = make_thread(j, ev->tid), *was = old != ev->tid ? find_thread(j, old) : NULL;
	if (t && was) {
		forget_pending(t);
		t->pending = was->pending; /* the call that replaced it goes on under the other number */
		was->pending = (struct pending){0};
		was->is_gone = true;
	}
	if (t)
		learn(j, t, &j->record);
	give(j, ev);
}

static void take(struct trace_join *j, const uint8_t *rec, uint32_t len)
{
	struct trace_record *r = &j->record;
	struct trace_event *ev = &r->ev;
	if (!trace_decode(rec, len, r)) {
		j->totals.damaged += len;
		return;
	}
	if (r->kind == TRACE_WIRE_NUMBERS) {
		take_numbers(j, ev->args[0], ev->args[1], ev->args[2]);
		return;
	}
	bool is_own = ev->cpu == TRACE_WIRE_NO_CPU;
	if (!is_own) {
		j->totals.received++;
		ev->seq = number(j, ev->cpu, r->seq, ev->time);
	}
	struct thread *t;
	switch (ev->kind) {
	case TRACE_SYSCALL:
		if (r->has_proc && (t = make_thread(j, ev->tid)))
			learn(j, t, r);
		take_call(j, rec, len);
		return;
	case TRACE_FORK:
		take_fork(j);
		return;
	case TRACE_EXEC:
		take_exec(j);
		return;
	case TRACE_PROCESS:
		t = make_thread(j, ev->tid);
		if (t)
			learn(j, t, r);
		if (is_own) /* else only its name has changed */
			give(j, ev);
		return;
	case TRACE_EXIT:
		give(j, ev);
		t = find_thread(j, ev->tid);
		if (t)
			t->is_gone = true;
		return;
	case TRACE_LOST:
		j->totals.lost += ev->lost.count;
		j->miss_cnt++;
		give(j, ev);
		return;
	default:
		give(j, ev);
	}
}

struct err *trace_join_chunk(struct trace_join *j, const uint8_t *chunk, size_t len, bool *ret_more)
{
	struct cur c = cur_make(chunk, len, false);
	uint32_t rec_len = 0;
	const uint8_t *rec;
	while (!j->is_done && !j->failed && (rec = trace_frame_next(&c, &rec_len)))
		take(j, rec, rec_len);
	if (c.failed)
		j->totals.damaged += len - c.pos;
	*ret_more = !j->is_done;
	return j->failed ? &err_nomem : NULL;
}

void trace_join_damage(struct trace_join *j)
{
	struct trace_event ev = {.kind = TRACE_LOST, .lost = {.reason = TRACE_LOST_FILE}};
	for (size_t i = 0; i < TRACE_CPUS; i++)
		j->cpus[i].is_damaged = true;
	j->miss_cnt++;
	give(j, &ev);
}

void trace_join_end(struct trace_join *j, const struct trace_cpu *cpus, size_t cnt)
{
	j->has_begun = true;
	for (size_t i = 0; i < cnt && i < TRACE_CPUS; i++)
		take_numbers(j, i, cpus[i].seen, false);
}

void trace_join_left(struct trace_join *j)
{
	for (size_t i = 0; i < j->threads.cnt && !j->is_done; i++) {
		const struct thread *t = &j->threads.data[i];
		struct trace_event *ev = &j->begun.ev;
		if (t->is_gone || !read_pending(j, t) || ev->left != TRACE_LEFT_UNKNOWN)
			continue;
		ev->left = TRACE_LEFT_AGAIN;
		give(j, ev);
	}
}

static void put_text(struct buf *records, size_t begin, uint8_t arg, const char *text)
{
	if (text)
		trace_record_slot(records, begin, (struct trace_wire_slot){.len = (uint16_t)strnlen(text, 4096), .arg = arg}, text);
}

void trace_join_snapshot(const struct trace_join *j, struct buf *records)
{
	for (size_t i = 0; i < TRACE_CPUS; i++) {
		if (!j->cpus[i].next)
			continue;
		struct trace_wire w = {.cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_WIRE_NUMBERS, .args = {i, j->cpus[i].next - 1}};
		trace_record_end(records, trace_record_begin(records, &w));
	}
	for (size_t i = 0; i < j->threads.cnt; i++) {
		const struct thread *t = &j->threads.data[i];
		if (t->is_gone)
			continue;
		struct trace_wire w = {.tid = t->tid, .cpu = TRACE_WIRE_NO_CPU, .kind = TRACE_PROCESS};
		size_t begin = trace_record_begin(records, &w);
		struct trace_wire_proc p = t->proc;
		memcpy(p.comm, t->comm, sizeof(p.comm));
		trace_record_slot(records, begin, (struct trace_wire_slot){.len = sizeof(p), .arg = TRACE_WIRE_ARG_PROC}, &p);
		put_text(records, begin, TRACE_ARG_EXE, t->exe);
		put_text(records, begin, TRACE_WIRE_ARG_CONTAINER, t->container);
		trace_record_end(records, begin);
		if (t->pending.rec) {
			size_t at = records->len;
			buf_add(records, "\0\0\0\0\0\0\0", TRACE_FRAME_LEN);
			buf_add(records, t->pending.rec, t->pending.len);
			/* Its number has been counted. */
			if (!records->failed)
				memset(records->data + at + TRACE_FRAME_LEN + offsetof(struct trace_wire, cpu), 0xff, sizeof(uint16_t));
			trace_record_end(records, at);
		}
	}
}

struct trace_totals trace_join_totals(const struct trace_join *j)
{
	return j->totals;
}
