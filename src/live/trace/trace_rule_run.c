/* SPDX-License-Identifier: Apache-2.0 */
/* Rules at work: events in, findings out. */
#include "live/trace/trace_rule.h"

#include "base/glob.h"
#include "live/trace/trace_fds.h"
#include "live/trace/trace_rule_int.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>

#define REPEATS_MAX (1u << 16)

static const struct rule_val val_unknown = {.kind = VAL_UNKNOWN};

static struct rule_val val_num(int64_t n)
{
	return (struct rule_val){.kind = VAL_NUM, .num = n};
}

static struct rule_val val_text(const char *s, size_t len)
{
	return (struct rule_val){.kind = VAL_TEXT, .s = s, .len = len};
}

static struct rule_val val_cstr(const char *s)
{
	return s && *s ? val_text(s, strlen(s)) : val_unknown;
}

/* --- processes --- */

static const struct rule_proc *find_proc(const struct trace_rules *r, uint32_t pid)
{
	uint32_t i;
	return pid && map_find(&r->proc_idx, pid, &i) ? &r->procs.data[i] : NULL;
}

static struct rule_proc *make_proc(struct trace_rules *r, uint32_t pid)
{
	uint32_t i;
	if (map_find(&r->proc_idx, pid, &i))
		return &r->procs.data[i];
	if (r->procs.cnt == RULE_PROCS_MAX || !VEC_PUSH(&r->procs, (struct rule_proc){.pid = pid})) {
		r->dropped++;
		return NULL;
	}
	if (!map_put(&r->proc_idx, pid, (uint32_t)r->procs.cnt - 1)) {
		r->procs.cnt--;
		r->dropped++;
		return NULL;
	}
	return &r->procs.data[r->procs.cnt - 1];
}

static void learn_names(struct rule_proc *p, const char *comm, const char *exe)
{
	if (comm && *comm) {
		strncpy(p->comm, comm, sizeof(p->comm) - 1);
		p->comm[sizeof(p->comm) - 1] = '\0';
	}
	if (exe && *exe && (!p->exe || strcmp(p->exe, exe))) {
		free(p->exe);
		p->exe = strdup(exe);
	}
}

static void learn(struct trace_rules *r, const struct trace_event *ev)
{
	if (ev->kind == TRACE_FORK && (uint32_t)ev->ret == (uint32_t)ev->args[1]) {
		/* A new process is its parent until it says otherwise; the number may have been another's. */
		struct rule_proc *child = make_proc(r, (uint32_t)ev->ret);
		const struct rule_proc *parent = find_proc(r, ev->pid);
		if (!child)
			return;
		child->ppid = ev->pid;
		*child->comm = '\0';
		free(take_ptr(child->exe));
		learn_names(child, ev->comm && *ev->comm ? ev->comm : parent ? parent->comm : NULL, ev->exe ? ev->exe : parent ? parent->exe : NULL);
		return;
	}
	if (ev->kind == TRACE_LOST || !ev->pid)
		return;
	struct rule_proc *p = make_proc(r, ev->pid);
	if (!p)
		return;
	if (ev->ppid)
		p->ppid = ev->ppid;
	learn_names(p, ev->comm, ev->exe);
}

static uint32_t parent_of(const struct trace_rules *r, uint32_t pid)
{
	const struct rule_proc *p = find_proc(r, pid);
	return p ? p->ppid : 0;
}

static bool is_below(const struct trace_rules *r, uint32_t pid, uint32_t ancestor)
{
	for (unsigned i = 0; pid && i < RULE_ANCESTORS_MAX; i++) {
		if (pid == ancestor)
			return true;
		pid = parent_of(r, pid);
	}
	return false;
}

/* --- values --- */

static const struct trace_slot *find_slot(const struct trace_event *ev, unsigned arg)
{
	for (uint32_t i = 0; i < ev->nslots; i++) {
		const struct trace_slot *s = &ev->slots[i];
		if (s->arg == arg && s->part == TRACE_PART_SELF && s->status != TRACE_ABSENT && s->data)
			return s;
	}
	return NULL;
}

/* A string that was read whole. */
static struct rule_val slot_text(const struct trace_slot *s)
{
	if (!s || s->status == TRACE_TRUNCATED || s->status == TRACE_FAULTED)
		return val_unknown;
	return val_text((const char *)s->data, strnlen((const char *)s->data, s->len));
}

static int64_t arg_number(const struct sysc_arg *a, uint64_t v)
{
	if (sysc_is_wide(a))
		return (int64_t)v;
	bool is_unsigned = strstr(a->ctype, "unsigned") || strstr(a->ctype, "u32") || strstr(a->ctype, "umode_t");
	return is_unsigned ? (int64_t)(uint32_t)v : (int64_t)(int32_t)(uint32_t)v;
}

static struct rule_val load(const struct trace_slot *s, unsigned off, unsigned size)
{
	uint64_t v = 0;
	if (!s || off + size > s->len)
		return val_unknown;
	memcpy(&v, s->data + off, size); /* in the byte order of this machine, which made the event */
	return val_num((int64_t)v);
}

static struct rule_val sockaddr_value(struct trace_rules *r, const struct trace_slot *s, unsigned field)
{
	uint16_t family;
	if (!s || s->len < 2)
		return val_unknown;
	memcpy(&family, s->data, 2);
	if (field == FIELD_FAMILY)
		return val_num(family);
	r->fd_path.len = 0;
	if (field == FIELD_SUN) {
		if (family != 1 || s->len < 3)
			return val_unknown;
		const char *at = (const char *)s->data + 2;
		size_t len = s->len - 2;
		if (*at)
			return val_text(at, strnlen(at, len));
		buf_add_ch(&r->fd_path, '@'); /* an abstract name */
		buf_add(&r->fd_path, at + 1, len - 1);
		return val_text(r->fd_path.data, r->fd_path.len);
	}
	bool is_v4 = family == 2 && s->len >= 8, is_v6 = family == 10 && s->len >= 24;
	if (!is_v4 && !is_v6)
		return val_unknown;
	if (field == FIELD_PORT)
		return val_num(s->data[2] << 8 | s->data[3]);
	char text[INET6_ADDRSTRLEN];
	if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, s->data + (is_v4 ? 4 : 8), text, sizeof(text)))
		return val_unknown;
	buf_add_str(&r->fd_path, text);
	return r->fd_path.failed ? val_unknown : val_text(r->fd_path.data, r->fd_path.len);
}

/* Puts a slash and the parts of a path behind what is in `out`, without ".", ".." and double slashes. Links are not followed. */
static void add_path(struct buf *out, const char *s, size_t len)
{
	while (len) {
		size_t n = 0;
		while (n < len && s[n] != '/')
			n++;
		if (n == 2 && s[0] == '.' && s[1] == '.') {
			while (out->len && out->data[out->len - 1] != '/')
				out->len--;
			out->len -= out->len ? 1 : 0;
		} else if (n && !(n == 1 && *s == '.')) {
			buf_add_ch(out, '/');
			buf_add(out, s, n);
		}
		s += n;
		len -= n;
		if (len) {
			s++;
			len--;
		}
	}
}

static struct rule_val path_value(struct trace_rules *r, const struct rule_alt *alt, const struct trace_event *ev)
{
	if (alt->kind == TRACE_EXEC)
		return val_cstr(ev->exe);
	struct rule_val v = slot_text(find_slot(ev, alt->kind == TRACE_MMAP ? 0 : (unsigned)alt->path_arg));
	if (alt->kind == TRACE_MMAP)
		return v;
	if (alt->path_arg < 0 || v.kind != VAL_TEXT || v.len > RULE_TEXT_MAX)
		return val_unknown;
	r->path.len = 0;
	if (!v.len || v.s[0] != '/') {
		int dirfd = alt->dirfd_arg < 0 ? AT_FDCWD : (int)(uint32_t)ev->args[alt->dirfd_arg];
		r->fd_path.len = 0;
		if (!r->fds || !trace_fds_path(r->fds, ev->pid, dirfd, &r->fd_path) || !r->fd_path.len || r->fd_path.data[0] != '/')
			return val_unknown;
		add_path(&r->path, r->fd_path.data, r->fd_path.len);
	}
	add_path(&r->path, v.s, v.len);
	if (!r->path.len)
		buf_add_ch(&r->path, '/');
	return r->path.failed ? val_unknown : val_text(r->path.data, r->path.len);
}

/* How a file is opened: O_*; -1 where that is not known. */
static int64_t open_flags(const struct rule_alt *alt, const struct trace_event *ev)
{
	if (!strcmp(alt->call->name, "creat"))
		return O_WRONLY | O_CREAT | O_TRUNC;
	if (alt->flags_arg < 0)
		return 0;
	uint64_t flags = ev->args[alt->flags_arg];
	if (!strcmp(alt->call->name, "openat2")) { /* struct open_how begins with the flags */
		struct rule_val v = load(find_slot(ev, (unsigned)alt->flags_arg), 0, 8);
		if (v.kind != VAL_NUM)
			return -1;
		flags = (uint64_t)v.num;
	}
	return (int64_t)(uint32_t)flags;
}

static bool is_to_write(int64_t flags)
{
	return flags >= 0 && ((flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR || flags & O_TRUNC);
}

static struct rule_val arg_value(const struct rule_alt *alt, unsigned arg, bool wants_text, const struct trace_event *ev)
{
	if (wants_text)
		return slot_text(find_slot(ev, arg));
	if (alt->kind == TRACE_FORK && arg == 1)
		return val_num(ev->ret);
	return val_num(alt->call ? arg_number(&alt->call->a[arg], ev->args[arg]) : (int64_t)ev->args[arg]);
}

/* The failed call's errno; 0 for one that did not fail. */
static int64_t errno_of(const struct trace_event *ev)
{
	return ev->kind == TRACE_SYSCALL && ev->ret < 0 && ev->ret >= -4095 ? -ev->ret : 0;
}

static struct rule_val value_of(struct trace_rules *r, const struct rule_alt *alt, struct rule_ref ref, const struct rule_pending *p, bool wants_text,
				const struct trace_event *ev)
{
	const struct rule_proc *proc = find_proc(r, ev->pid);
	switch ((enum rule_field)ref.field) {
	case FIELD_RET:
		return val_num(ev->ret);
	case FIELD_OK:
		return val_num(!errno_of(ev));
	case FIELD_FAILED:
	case FIELD_ERRNO:
		return val_num(ref.field == FIELD_ERRNO ? errno_of(ev) : errno_of(ev) != 0);
	case FIELD_PID:
		return val_num(ev->pid);
	case FIELD_TID:
		return val_num(ev->tid);
	case FIELD_PPID:
		return ev->ppid ? val_num(ev->ppid) : parent_of(r, ev->pid) ? val_num(parent_of(r, ev->pid)) : val_unknown;
	case FIELD_COMM:
		return val_cstr(ev->comm && *ev->comm ? ev->comm : proc ? proc->comm : NULL);
	case FIELD_EXE:
		return val_cstr(ev->exe ? ev->exe : proc ? proc->exe : NULL);
	case FIELD_NAME:
		return val_cstr(alt->call ? alt->call->name : NULL);
	case FIELD_ARG:
		return arg_value(alt, ref.arg, wants_text, ev);
	case FIELD_LOAD:
		return load(find_slot(ev, ref.arg), ref.off, ref.size);
	case FIELD_FAMILY:
	case FIELD_PORT:
	case FIELD_HOST:
	case FIELD_SUN:
		return sockaddr_value(r, find_slot(ev, ref.arg), ref.field);
	case FIELD_PATH:
		return path_value(r, alt, ev);
	case FIELD_FD_PATH:
		r->fd_path.len = 0;
		return r->fds && trace_fds_path(r->fds, ev->pid, (int)(uint32_t)ev->args[ref.arg], &r->fd_path) && !r->fd_path.failed
			       ? val_text(r->fd_path.data, r->fd_path.len) : val_unknown;
	case FIELD_WRITES:
	case FIELD_CREATES: {
		int64_t flags = alt->call ? open_flags(alt, ev) : -1;
		return flags < 0 ? val_unknown : val_num(ref.field == FIELD_WRITES ? is_to_write(flags) : (flags & O_CREAT) != 0);
	}
	case FIELD_VAR:
		return p ? p->vars[ref.arg] : val_unknown;
	case FIELD_PARENT_COMM:
	case FIELD_PARENT_EXE: {
		const struct rule_proc *parent = find_proc(r, ev->ppid ? ev->ppid : parent_of(r, ev->pid));
		return val_cstr(!parent ? NULL : ref.field == FIELD_PARENT_COMM ? parent->comm : parent->exe);
	}
	default: /* argv, envp, ancestors: lists, see below */
		return val_unknown;
	}
}

/* --- conditions --- */

static bool text_matches(const struct rule_lit *l, unsigned cmp, struct rule_val v)
{
	if (cmp == CMP_STARTS)
		return v.len >= l->len && !memcmp(v.s, l->text, l->len);
	if (!l->has_wildcard || cmp == CMP_EQ || cmp == CMP_NE)
		return v.len == l->len && !memcmp(v.s, l->text, l->len);
	return glob_match(l->text, l->len, v.s, v.len, false);
}

static bool number_matches(unsigned cmp, int64_t v, int64_t lit)
{
	switch (cmp) {
	case CMP_LT:
		return v < lit;
	case CMP_LE:
		return v <= lit;
	case CMP_GT:
		return v > lit;
	case CMP_GE:
		return v >= lit;
	case CMP_BITS:
		return v & lit;
	default: /* EQ, NE */
		return v == lit;
	}
}

/* Whether one of a slot's strings, each with its NUL, is meant. */
static int list_has(const struct rule_node *n, const struct trace_slot *s)
{
	if (!s)
		return -1;
	for (size_t at = 0; at < s->len;) {
		size_t len = strnlen((const char *)s->data + at, s->len - at);
		for (uint32_t i = 0; i < n->lit_cnt && at + len < s->len; i++) {
			if (text_matches(&n->lits[i], CMP_GLOB, val_text((const char *)s->data + at, len)))
				return 1;
		}
		at += len + 1;
	}
	return s->status == TRACE_TRUNCATED || s->status == TRACE_FAULTED ? -1 : 0;
}

static int test_value(const struct rule_node *n, const struct rule_pending *p, const struct trace_event *ev, struct rule_val v,
		      const struct rule_lit *l)
{
	if (l->is_var) {
		struct rule_val w = p ? p->vars[l->num[0]] : val_unknown;
		if (w.kind == VAL_UNKNOWN || w.kind != v.kind)
			return -1;
		if (w.kind == VAL_NUM)
			return number_matches(n->cmp, v.num, w.num);
		return n->cmp == CMP_STARTS ? v.len >= w.len && !memcmp(v.s, w.s, w.len) : v.len == w.len && !memcmp(v.s, w.s, w.len);
	}
	if (v.kind == VAL_UNKNOWN || (v.kind == VAL_TEXT) != (l->text != NULL))
		return -1;
	return l->text ? text_matches(l, n->cmp, v) : number_matches(n->cmp, v.num, l->num[MIN(ev->abi, TRACE_ABI_COUNT - 1)]);
}

/* One literal of the list is enough; for != and !~ none may be met. */
static int test_lits(struct trace_rules *r, const struct rule_alt *alt, const struct rule_node *n, const struct rule_pending *p,
		     const struct trace_event *ev, const struct rule_val *given)
{
	int any = 0;
	for (uint32_t i = 0; i < n->lit_cnt && any != 1; i++) {
		const struct rule_lit *l = &n->lits[i];
		bool wants_text = l->text || (l->is_var && p && p->vars[l->num[0]].kind == VAL_TEXT);
		struct rule_val v = given ? *given : value_of(r, alt, n->ref, p, wants_text, ev);
		const struct trace_slot *s = n->cmp == CMP_STARTS && n->ref.field == FIELD_ARG ? find_slot(ev, n->ref.arg) : NULL;
		if (s)
			v = val_text((const char *)s->data, s->len); /* bytes, of which the beginning is enough */
		int one = test_value(n, p, ev, v, l);
		any = one == 1 ? 1 : one < 0 ? -1 : any;
	}
	return any < 0 || (n->cmp != CMP_NE && n->cmp != CMP_NOT_GLOB) ? any : !any;
}

static int test_ancestors(struct trace_rules *r, const struct rule_alt *alt, const struct rule_node *n, const struct rule_pending *p,
			  const struct trace_event *ev)
{
	uint32_t below = ev->pid, pid = ev->ppid ? ev->ppid : parent_of(r, ev->pid);
	for (unsigned i = 0; i < RULE_ANCESTORS_MAX && below != 1; i++) {
		const struct rule_proc *a = find_proc(r, pid);
		if (!a)
			return -1;
		struct rule_val v = val_cstr(n->ref.field == FIELD_ANCESTOR_COMM ? a->comm : a->exe);
		if (test_lits(r, alt, n, p, ev, &v) == 1)
			return 1;
		below = pid;
		pid = a->ppid;
	}
	return below == 1 ? 0 : -1; /* the first process has no parent */
}

static int eval(struct trace_rules *r, const struct rule_alt *alt, uint32_t node, const struct rule_pending *p, const struct trace_event *ev)
{
	const struct rule_node *n = &alt->nodes[node];
	if (n->kind == NODE_NOT) {
		int a = eval(r, alt, n->a, p, ev);
		return a < 0 ? -1 : !a;
	}
	if (n->kind == NODE_AND || n->kind == NODE_OR) {
		int stop = n->kind == NODE_OR, a = eval(r, alt, n->a, p, ev);
		if (a == stop)
			return stop;
		int b = eval(r, alt, n->b, p, ev);
		return b == stop ? stop : a < 0 || b < 0 ? -1 : !stop;
	}
	unsigned f = n->ref.field;
	if (f == FIELD_ANCESTOR_COMM || f == FIELD_ANCESTOR_EXE)
		return test_ancestors(r, alt, n, p, ev);
	if (n->kind == NODE_TEST && n->cmp == CMP_HAS)
		return list_has(n, find_slot(ev, f == FIELD_ARGV ? TRACE_ARG_ARGV : f == FIELD_ENVP ? TRACE_ARG_ENVP : n->ref.arg));
	if (n->kind == NODE_TEST)
		return test_lits(r, alt, n, p, ev, NULL);
	struct rule_val v = value_of(r, alt, n->ref, p, false, ev);
	return v.kind == VAL_UNKNOWN ? -1 : v.kind == VAL_NUM ? v.num != 0 : v.len != 0;
}

/* --- sequences --- */

static void pending_fini(struct rule_pending *p)
{
	for (unsigned i = 0; i < RULE_VARS_MAX; i++) {
		if (p->vars[i].kind == VAL_TEXT)
			free((char *)p->vars[i].s);
	}
}

static void set_vars(struct trace_rules *r, const struct rule_alt *alt, struct rule_pending *p, const struct trace_event *ev)
{
	for (unsigned i = 0; i < alt->let_cnt; i++) {
		struct rule_ref ref = alt->lets[i];
		bool is_text = ref.field == FIELD_ARG && alt->call && alt->call->a[ref.arg].fetch == SYSC_FETCH_STR;
		struct rule_val v = value_of(r, alt, ref, p, is_text, ev), *to = &p->vars[alt->let_var[i]];
		if (v.kind == VAL_TEXT) {
			char *copy = strndup(v.s, MIN(v.len, (size_t)RULE_TEXT_MAX));
			v = copy ? val_text(copy, strlen(copy)) : val_unknown;
		}
		if (to->kind == VAL_TEXT)
			free((char *)to->s);
		*to = v;
	}
}

static bool same_vars(const struct rule_pending *a, const struct rule_pending *b)
{
	for (unsigned i = 0; i < RULE_VARS_MAX; i++) {
		const struct rule_val *x = &a->vars[i], *y = &b->vars[i];
		if (x->kind != y->kind || (x->kind == VAL_NUM && x->num != y->num) ||
		    (x->kind == VAL_TEXT && (x->len != y->len || memcmp(x->s, y->s, x->len))))
			return false;
	}
	return true;
}

/* A sequence begins; one that is the same but for its time begins anew. */
static void begin(struct trace_rules *r, uint32_t rule, const struct rule_alt *alt, const struct trace_event *ev)
{
	struct rule_pending p = {.step = 1, .pid = ev->pid, .tid = ev->tid, .first_pid = ev->pid, .time = ev->time, .first_time = ev->time};
	set_vars(r, alt, &p, ev);
	for (size_t i = 0; i < r->pending[rule].cnt; i++) {
		struct rule_pending *q = &r->pending[rule].data[i];
		if (q->step == 1 && q->pid == p.pid && q->tid == p.tid && same_vars(q, &p)) {
			q->time = q->first_time = ev->time;
			pending_fini(&p);
			return;
		}
	}
	if (r->pending[rule].cnt == RULE_PENDING_MAX) {
		pending_fini(&r->pending[rule].data[0]);
		memmove(r->pending[rule].data, r->pending[rule].data + 1, --r->pending[rule].cnt * sizeof(p));
		r->dropped++;
	}
	if (!VEC_PUSH(&r->pending[rule], p)) {
		pending_fini(&p);
		r->dropped++;
	}
}

static void tell(struct trace_rules *r, uint32_t rule, const struct rule_pending *p, const struct trace_event *ev)
{
	const struct rule *u = r->rules.data[rule];
	const struct rule_proc *proc = find_proc(r, ev->pid);
	uint64_t key = ((uint64_t)rule << 32 | ev->pid) * 0x9e3779b97f4a7c15u ^ ev->ip;
	uint32_t i;
	if (map_find(&r->repeat_idx, key, &i)) {
		r->repeats.data[i].cnt++;
		r->repeats.data[i].time = ev->time;
		return;
	}
	if (r->repeats.cnt < REPEATS_MAX && map_put(&r->repeat_idx, key, (uint32_t)r->repeats.cnt) &&
	    !VEC_PUSH(&r->repeats, (struct rule_repeat){.rule = rule, .pid = ev->pid, .ip = ev->ip, .time = ev->time}))
		r->dropped++;
	r->fn(r->ctx, &(struct trace_finding){
		.rule = u->name, .title = u->title, .severity = u->severity, .technique = u->technique, .ev = ev, .pid = ev->pid,
		.comm = ev->comm && *ev->comm ? ev->comm : proc ? proc->comm : NULL, .exe = ev->exe ? ev->exe : proc ? proc->exe : NULL,
		.time = ev->time, .first_time = p ? p->first_time : ev->time, .first_pid = p ? p->first_pid : ev->pid,
	});
}

static bool is_due(const struct trace_rules *r, const struct rule_step *st, const struct rule_pending *p, const struct trace_event *ev)
{
	switch ((enum rule_by)st->by) {
	case BY_PROCESS:
		return ev->pid == p->pid;
	case BY_THREAD:
		return ev->tid == p->tid;
	case BY_TREE:
		return is_below(r, ev->pid, p->pid);
	default:
		return true;
	}
}

static bool alt_matches(struct trace_rules *r, const struct rule_alt *alt, const struct rule_pending *p, const struct trace_event *ev)
{
	if (alt->must_write && !is_to_write(open_flags(alt, ev)))
		return false;
	return alt->root == UINT32_MAX || eval(r, alt, alt->root, p, ev) == 1;
}

static void advance(struct trace_rules *r, uint32_t rule, uint32_t step, const struct rule_alt *alt, const struct trace_event *ev)
{
	const struct rule *u = r->rules.data[rule];
	const struct rule_step *st = &u->steps[step];
	size_t kept = 0;
	for (size_t i = 0; i < r->pending[rule].cnt; i++) {
		struct rule_pending *p = &r->pending[rule].data[i];
		uint64_t limit = u->steps[p->step].within_ns;
		bool ends = limit && ev->time > p->time && ev->time - p->time > limit;
		if (!ends && p->step == step && is_due(r, st, p, ev) && alt_matches(r, alt, p, ev)) {
			ends = step + 1 == u->step_cnt;
			if (ends) {
				tell(r, rule, p, ev);
			} else {
				set_vars(r, alt, p, ev);
				p->step++;
				p->pid = ev->pid;
				p->tid = ev->tid;
				p->time = ev->time;
			}
		}
		if (ends)
			pending_fini(p);
		else
			r->pending[rule].data[kept++] = *p;
	}
	r->pending[rule].cnt = kept;
}

/* --- what is looked at --- */

/* Where the uses of an event are listed: by number of the call, then by kind. */
static uint32_t use_slot(unsigned abi, unsigned kind, int nr)
{
	return kind == TRACE_SYSCALL ? (uint32_t)nr : (uint32_t)sysc_end(abi) + kind;
}

static bool index_uses(struct trace_rules *r)
{
	for (unsigned abi = 0; abi < TRACE_ABI_COUNT; abi++) {
		uint32_t slots = (uint32_t)sysc_end(abi) + TRACE_KIND_COUNT;
		free(r->use_at[abi]);
		r->use_at[abi] = alloc_array(slots + 1u, sizeof(uint32_t));
		r->uses[abi].cnt = 0;
		if (!r->use_at[abi])
			return false;
		for (uint32_t slot = 0; slot < slots; slot++) {
			r->use_at[abi][slot] = (uint32_t)r->uses[abi].cnt;
			/* Later steps first: an event that begins a sequence does not continue it. */
			for (uint32_t i = 0; i < r->rules.cnt; i++) {
				const struct rule *u = r->rules.data[i];
				for (uint32_t k = u->step_cnt; k--;) {
					for (uint32_t a = 0; a < u->steps[k].alt_cnt; a++) {
						const struct rule_alt *alt = &u->steps[k].alts[a];
						int nr = alt->call ? alt->call->nr[abi] : 0;
						if (nr >= 0 && use_slot(abi, alt->kind, nr) == slot &&
						    !VEC_PUSH(&r->uses[abi], (struct rule_use){i, k, a}))
							return false;
					}
				}
			}
		}
		r->use_at[abi][slots] = (uint32_t)r->uses[abi].cnt;
	}
	return true;
}

bool trace_rules_begin(struct trace_rules *r, trace_finding_fn *fn, void *ctx, struct trace_fds *fds)
{
	r->fn = fn;
	r->ctx = ctx;
	r->fds = fds;
	r->pending = alloc_array(r->rules.cnt, sizeof(*r->pending));
	return r->pending && index_uses(r);
}

bool trace_rules_needs(const struct trace_rules *r, unsigned abi, int nr)
{
	if (abi >= TRACE_ABI_COUNT || nr < 0 || nr >= sysc_end(abi))
		return false;
	return r->use_at[abi][nr + 1] > r->use_at[abi][nr];
}

void trace_rules_event(struct trace_rules *r, const struct trace_event *ev)
{
	unsigned abi = MIN((unsigned)ev->abi, TRACE_ABI_COUNT - 1u);
	if (ev->unfinished || ev->kind >= TRACE_KIND_COUNT || (ev->kind == TRACE_SYSCALL && (ev->nr < 0 || ev->nr >= sysc_end(abi))))
		return;
	uint32_t slot = use_slot(abi, ev->kind, ev->nr);
	struct rule_use was = {UINT32_MAX, 0, 0};
	for (uint32_t i = r->use_at[abi][slot]; i < r->use_at[abi][slot + 1]; i++) {
		struct rule_use use = r->uses[abi].data[i];
		const struct rule *u = r->rules.data[use.rule];
		const struct rule_alt *alt = &u->steps[use.step].alts[use.alt];
		if (use.step) {
			advance(r, use.rule, use.step, alt, ev);
			continue;
		}
		/* A rename touches two paths and is one event. */
		if (was.rule == use.rule || !alt_matches(r, alt, NULL, ev))
			continue;
		was = use;
		if (u->step_cnt == 1)
			tell(r, use.rule, NULL, ev);
		else
			begin(r, use.rule, alt, ev);
	}
	learn(r, ev);
}

uint64_t trace_rules_finish(struct trace_rules *r)
{
	for (size_t i = 0; i < r->repeats.cnt; i++) {
		const struct rule_repeat *p = &r->repeats.data[i];
		const struct rule *u = r->rules.data[p->rule];
		const struct rule_proc *proc = find_proc(r, p->pid);
		if (p->cnt)
			r->fn(r->ctx, &(struct trace_finding){
				.rule = u->name, .title = u->title, .severity = u->severity, .technique = u->technique, .pid = p->pid,
				.comm = proc ? proc->comm : NULL, .exe = proc ? proc->exe : NULL, .time = p->time, .first_time = p->time,
				.first_pid = p->pid, .repeats = p->cnt,
			});
	}
	return r->dropped;
}

struct err *trace_rules_new(struct trace_rules **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : &err_nomem;
}

void trace_rules_free(struct trace_rules *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->pending && i < r->rules.cnt; i++) {
		for (size_t k = 0; k < r->pending[i].cnt; k++)
			pending_fini(&r->pending[i].data[k]);
		VEC_FREE(&r->pending[i]);
	}
	for (size_t i = 0; i < r->procs.cnt; i++)
		free(r->procs.data[i].exe);
	for (unsigned abi = 0; abi < TRACE_ABI_COUNT; abi++) {
		free(r->use_at[abi]);
		VEC_FREE(&r->uses[abi]);
	}
	free(r->pending);
	VEC_FREE(&r->procs);
	VEC_FREE(&r->repeats);
	VEC_FREE(&r->rules);
	map_fini(&r->proc_idx);
	map_fini(&r->repeat_idx);
	buf_fini(&r->path);
	buf_fini(&r->fd_path);
	arena_fini(&r->arena);
	free(r);
}

bool trace_rules_get(const struct trace_rules *r, size_t idx, struct trace_finding *ret)
{
	if (idx >= r->rules.cnt)
		return false;
	const struct rule *u = r->rules.data[idx];
	*ret = (struct trace_finding){.rule = u->name, .title = u->title, .severity = u->severity, .technique = u->technique};
	return true;
}
