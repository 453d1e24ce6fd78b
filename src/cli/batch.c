/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scry batch`: one operation on many files, each in a process of its own that is killed when it takes too long. The child is a fork that
 * answers as the command does, writes the answer beside its name and reports in one line of JSON how it ended; the parent reads none of the file,
 * gives the answer its name and writes the line of the state. Children are groups of their own: Ctrl+C is the parent's to handle, and what
 * a child leaves behind goes with it.
 */
#include "cli/batch_int.h"

#include "base/file.h"
#include "base/map.h"
#include "session/ses_sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define BATCH_JOBS_MAX 256
#define BATCH_TEXT_MAX 2000 /* bytes of a report's texts; all of it fits into a pipe that nobody reads yet (pipe(7)) */
#define BATCH_REPORT_MAX 65536

struct batch_job {
	pid_t pid;
	int pid_fd, report_fd;
	uint32_t item;
	uint64_t began_ns;
};

struct batch_run {
	struct batch *b;
	struct batch_job jobs[BATCH_JOBS_MAX];
	uint32_t job_cnt;
	uint32_t next;       /* the item to look at next */
	uint64_t told_cnt;
	struct map by_sha;   /* first half of the hash to item */
	struct arena arena;  /* of reports */
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- the child --- */

static void part_name(const struct batch_item *it, pid_t pid, struct buf *ret)
{
	batch_out_name(it, ret);
	buf_printf(ret, ".%d.part", (int)pid);
	buf_add_ch(ret, 0);
}

static struct err *write_answer(const struct batch *b, const struct batch_item *it, struct buf *text)
{
	_cleanup_buf_ struct buf name = {0};
	part_name(it, getpid(), &name);
	buf_add_ch(text, '\n');
	if (name.failed || text->failed)
		return &err_nomem;
	_cleanup_close_ int fd = openat(b->out_fd, name.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_os(errno == EACCES ? EIO : errno, "%s", b->out);
	for (size_t done = 0; done < text->len;) {
		ssize_t n = write(fd, text->data + done, text->len - done);
		if (n < 0 && errno != EINTR)
			return err_os(errno, "%s", b->out);
		done += n > 0 ? (size_t)n : 0;
	}
	return NULL;
}

/* What else an operation writes lies beside its answer. */
static struct err *set_output(struct cli *c, const struct batch *b, const struct batch_item *it)
{
	const struct ops_param *p = ops_param_find(c->op, "output", 6);
	bool is_needed = p && (!strcmp(c->op->name, "native_build") || (ops_param_find(c->op, "all", 3) && ops_arg_is_set(&c->args, "all")));
	_cleanup_buf_ struct buf name = {0};
	if (!is_needed)
		return NULL;
	batch_out_name(it, &name);
	if (name.failed || name.len < 5)
		return &err_nomem;
	char *path = arena_printf(&c->arena, "%s/%.*s.out", b->out, (int)(name.len - 5), name.data);
	return path ? ops_args_set(&c->args, p, path) : &err_nomem;
}

static struct err *answer(const struct batch *b, const struct batch_item *it, struct buf *text, struct err **ret_status)
{
	struct cli *c = b->c;
	struct ses *s = NULL;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const struct ses_opts opts = {.threads = MAX((unsigned)cpus / b->jobs, 1u), .no_store = c->no_store,
				      .force = ops_arg_is_set(&c->args, "force"), .processor = c->load[0], .base = c->load[1], .format = c->load[2]};
	const struct ses_call call = {.caps = ~(uint32_t)0, .may_consent = true, .max_bytes = ops_arg_u64(&c->args, "max_bytes", 0)};
	struct err *e = set_output(c, b, it);
	if (!e)
		e = ses_open(it->path, &opts, &s);
	if (e)
		return e;
	struct ops_out out;
	struct ses_snap *sn = ses_snap_get(s);
	ops_out_init(&out, c->op, text, true);
	struct ops_req rq = {.sn = sn, .call = &call, .args = &c->args, .arena = &c->arena, .out = &out, .no_store = c->no_store};
	e = ops_run(&rq);
	*ret_status = out.status;
	ses_snap_put(sn);
	ses_close(s);
	return e;
}

static void put_text(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_strn(j, s ? s : "", s ? strnlen(s, BATCH_TEXT_MAX) : 0);
}

static void put_flag(struct json *j, const char *key, bool is)
{
	json_key(j, key);
	json_bool(j, is);
}

static void report(int fd, const struct err *e, const struct err *lost, bool is_program, uint64_t bytes)
{
	struct buf line = {0};
	struct json j = json_make(&line);
	json_obj(&j);
	json_key(&j, "exit");
	json_u64(&j, !e ? 0 : e->kind == ERR_DENIED && e->os_errno ? 4 : (unsigned)err_exit_status(e->kind));
	put_text(&j, "kind", e ? err_kind_name(e->kind) : "");
	put_text(&j, "why", e ? e->text : "");
	put_text(&j, "fix", e ? e->fix : "");
	put_text(&j, "lost", lost ? lost->text : "");
	put_flag(&j, "program", is_program);
	json_key(&j, "bytes");
	json_u64(&j, bytes);
	json_end_obj(&j);
	if (!line.failed)
		(void)!write(fd, line.data, line.len);
}

static void child_begin(const struct batch *b, pid_t parent)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	const struct rlimit none = {0, 0};
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigaction(SIGINT, &usual, NULL);
	sigaction(SIGTERM, &usual, NULL);
	setrlimit(RLIMIT_CORE, &none);
	close(b->state_fd);
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(1);
}

_Noreturn static void child(const struct batch *b, const struct batch_item *it, int fd)
{
	struct buf text = {0};
	struct err *status = NULL, *lost = NULL, *e = answer(b, it, &text, &status);
	bool is_program = !e || e->kind != ERR_UNSUPPORTED || text.len || status;
	uint64_t bytes = text.len ? text.len + 1 : 0;
	if (text.len)
		lost = write_answer(b, it, &text);
	report(fd, e ? e : status, lost, is_program, lost ? 0 : bytes);
	_exit(0);
}

/* --- jobs --- */

/* Whatever is left of it goes; gives how it ended (waitpid(2)). The group is killed before it is waited for: until then its number is this one's. */
static int job_fini(struct batch_job *job)
{
	int status = 0;
	kill(-job->pid, SIGKILL);
	kill(job->pid, SIGKILL);
	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(job->pid_fd);
	close(job->report_fd);
	return status;
}

static struct err *start(struct batch_run *r, uint32_t item)
{
	int report[2];
	pid_t parent = getpid();
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK))
		return err_os(errno, "batch: no pipe");
	pid_t pid = fork();
	if (pid == 0) {
		child_begin(r->b, parent);
		child(r->b, &r->b->items.data[item], report[1]);
	}
	int os_errno = errno;
	close(report[1]);
	int pid_fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid_fd < 0) {
		os_errno = pid < 0 ? os_errno : errno;
		close(report[0]);
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		return err_os(os_errno == EPERM ? EIO : os_errno, "batch: no process for %s", r->b->items.data[item].name);
	}
	fcntl(pid_fd, F_SETFD, FD_CLOEXEC);
	setpgid(pid, pid);
	r->jobs[r->job_cnt++] = (struct batch_job){.pid = pid, .pid_fd = pid_fd, .report_fd = report[0], .item = item, .began_ns = now_ns()};
	return NULL;
}

/* --- how it ended --- */

static const char *keep(struct batch_run *r, const struct ops_doc *d, const char *key)
{
	const char *s = ops_doc_str(d, key), *copy = s ? arena_strndup(&r->arena, s, strlen(s)) : NULL;
	return copy ? copy : "";
}

static struct err *take_answer(struct batch_run *r, struct batch_item *it, pid_t pid)
{
	_cleanup_buf_ struct buf part = {0}, name = {0};
	struct stat st;
	part_name(it, pid, &part);
	batch_out_name(it, &name);
	buf_add_ch(&name, 0);
	if (part.failed || name.failed)
		return &err_nomem;
	if (fstatat(r->b->out_fd, part.data, &st, AT_SYMLINK_NOFOLLOW) || renameat(r->b->out_fd, part.data, r->b->out_fd, name.data))
		return err_os(errno == EACCES || errno == ENOENT ? EIO : errno, "%s/%s", r->b->out, name.data);
	it->has_answer = true;
	it->bytes = (uint64_t)st.st_size;
	return NULL;
}

/* The report comes from a process that read a hostile file. */
static struct err *take_report(struct batch_run *r, struct batch_item *it, const struct batch_job *job)
{
	_cleanup_free_ char *text = malloc(BATCH_REPORT_MAX);
	struct arena a = {0};
	struct ops_doc d, *num;
	if (!text)
		return &err_nomem;
	ssize_t n = read(job->report_fd, text, BATCH_REPORT_MAX);
	struct err *e = n > 0 ? ops_doc_parse("report", text, (size_t)n, &a, &d) : err_new(ERR_INTERNAL, "nothing was reported");
	if (e || d.kind != OPS_DOC_OBJECT) {
		err_free(e);
		arena_fini(&a);
		it->status = BATCH_CRASHED;
		it->exit = 5;
		it->kind = "internal";
		it->why = "its process ended without a word";
		return NULL;
	}
	num = (struct ops_doc *)ops_doc_find(&d, "exit");
	it->exit = num && num->kind == OPS_DOC_INT && num->num >= 0 && num->num < 256 ? (int)num->num : 5;
	it->kind = keep(r, &d, "kind");
	it->why = keep(r, &d, "why");
	it->fix = keep(r, &d, "fix");
	num = (struct ops_doc *)ops_doc_find(&d, "program");
	it->status = num && num->kind == OPS_DOC_BOOL && !num->num ? BATCH_NO_PROGRAM : it->exit ? BATCH_FAILED : BATCH_DONE;
	num = (struct ops_doc *)ops_doc_find(&d, "bytes");
	const char *lost = ops_doc_str(&d, "lost");
	if (lost && *lost)
		e = err_new(ERR_IO, "%s", lost);
	else if (num && num->kind == OPS_DOC_INT && num->num)
		e = take_answer(r, it, job->pid);
	arena_fini(&a);
	return e;
}

static void remove_part(const struct batch_run *r, const struct batch_item *it, pid_t pid)
{
	_cleanup_buf_ struct buf part = {0};
	part_name(it, pid, &part);
	if (!part.failed)
		unlinkat(r->b->out_fd, part.data, 0);
}

/* Its report stays in the pipe when it is gone. */
static struct err *ended(struct batch_run *r, struct batch_job *job, bool is_late)
{
	struct batch_item *it = &r->b->items.data[job->item];
	struct err *e = NULL;
	int report_fd = dup(job->report_fd);
	int status = job_fini(job);
	job->report_fd = report_fd;
	it->ms = (now_ns() - job->began_ns) / 1000000;
	if (is_late) {
		it->status = BATCH_TIMEOUT;
		it->exit = 1;
		it->kind = "timeout";
		it->why = "took longer than --timeout";
	} else if (WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));
		it->status = BATCH_CRASHED;
		it->exit = 5;
		it->kind = "internal";
		it->why = arena_printf(&r->arena, "its process died of SIG%s", name ? name : "?");
		it->why = it->why ? it->why : "";
	} else {
		e = take_report(r, it, job);
	}
	if (!it->has_answer)
		remove_part(r, it, job->pid);
	close(report_fd);
	return e;
}

/* --- telling --- */

static void put_row(const struct batch_item *it, struct buf *out)
{
	if (it->status == BATCH_DONE || (it->status == BATCH_SKIPPED && !*it->why))
		return;
	buf_printf(out, "%-10s  ", batch_status_name(it->status));
	ops_escape(out, it->name, strlen(it->name));
	buf_add_str(out, *it->why ? ": " : "");
	ops_escape(out, it->why, strlen(it->why));
	buf_add_ch(out, '\n');
}

static struct err *tell(struct batch_run *r, struct batch_item *it)
{
	_cleanup_buf_ struct buf line = {0};
	struct batch *b = r->b;
	struct err *e = batch_state_add(b, it);
	b->counts[it->status]++;
	b->same_cnt += it->same_as != BATCH_NONE;
	r->told_cnt++;
	if (b->c->is_json)
		batch_put_item(b, it, &line);
	else
		put_row(it, &line);
	if (line.len && !e) {
		cli_progress_end(b->c);
		e = line.failed ? &err_nomem : cli_write(&line);
	}
	return e;
}

static void show_progress(struct batch_run *r)
{
	char text[100];
	const uint64_t *n = r->b->counts;
	if (!isatty(STDERR_FILENO))
		return;
	snprintf(text, sizeof(text), "%llu of %zu, %llu failed", (unsigned long long)r->told_cnt, r->b->items.cnt,
		 (unsigned long long)(n[BATCH_FAILED] + n[BATCH_TIMEOUT] + n[BATCH_CRASHED]));
	cli_put_progress(r->told_cnt, r->b->items.cnt, text);
	r->b->c->is_progress = true;
}

/* --- what next --- */

/* Of files with the same size the first that has these bytes. What cannot be read here cannot be read by its process, which says why. */
static struct err *find_twin(struct batch_run *r, uint32_t i)
{
	struct batch_item *it = &r->b->items.data[i];
	struct file *f = NULL;
	uint64_t key;
	uint32_t was;
	struct err *e = it->has_sha ? NULL : file_open(it->path, &f);
	if (!e && !it->has_sha)
		e = ses_sha256(f->data, f->len, cli_stop(), NULL, NULL, it->sha);
	it->has_sha |= !e && f && !file_has_changed(f);
	file_close(f);
	if (e && e->kind != ERR_CANCELLED && e->kind != ERR_NOMEM) {
		err_free(e);
		return NULL;
	}
	if (e || !it->has_sha)
		return e;
	memcpy(&key, it->sha, sizeof(key));
	if (!map_find(&r->by_sha, key, &was))
		return map_put(&r->by_sha, key, i) ? NULL : &err_nomem;
	if (was != i && !memcmp(r->b->items.data[was].sha, it->sha, sizeof(it->sha)))
		it->same_as = was;
	return NULL;
}

/* The item is told when nothing is to be done for it, or begun, or left until its twin is done. */
static struct err *begin(struct batch_run *r, uint32_t i)
{
	struct batch_item *it = &r->b->items.data[i];
	struct err *e = it->is_shared && it->is_file ? find_twin(r, i) : NULL;
	if (e || it->same_as != BATCH_NONE)
		return e;
	return it->status == BATCH_WAITING ? start(r, i) : tell(r, it);
}

static struct err *tell_twins(struct batch_run *r)
{
	struct err *e = NULL;
	for (size_t i = 0; i < r->b->items.cnt && !e; i++) {
		struct batch_item *it = &r->b->items.data[i];
		if (it->same_as == BATCH_NONE)
			continue;
		const struct batch_item *of = &r->b->items.data[it->same_as];
		it->status = of->status;
		it->exit = of->exit;
		it->has_answer = of->has_answer;
		it->bytes = of->bytes;
		it->kind = of->kind;
		it->why = of->why;
		it->fix = of->fix;
		it->ms = 0;
		e = tell(r, it);
	}
	return e;
}

static int next_deadline_ms(const struct batch_run *r)
{
	uint64_t now = now_ns(), first = UINT64_MAX;
	for (uint32_t k = 0; k < r->job_cnt; k++)
		first = MIN(first, r->jobs[k].began_ns + r->b->timeout_ms * 1000000);
	return first <= now ? 0 : (int)MIN((first - now) / 1000000 + 1, (uint64_t)60000);
}

static struct err *wait_some(struct batch_run *r)
{
	struct pollfd fds[BATCH_JOBS_MAX];
	struct err *e = NULL;
	for (uint32_t k = 0; k < r->job_cnt; k++)
		fds[k] = (struct pollfd){.fd = r->jobs[k].pid_fd, .events = POLLIN};
	if (poll(fds, r->job_cnt, next_deadline_ms(r)) < 0 && errno != EINTR)
		return err_os(errno, "batch: waiting");
	uint32_t kept = 0;
	for (uint32_t k = 0; k < r->job_cnt; k++) {
		struct batch_job job = r->jobs[k];
		bool is_late = now_ns() >= job.began_ns + r->b->timeout_ms * 1000000;
		if (e || (!(fds[k].revents & POLLIN) && !is_late)) {
			r->jobs[kept++] = job;
			continue;
		}
		e = ended(r, &job, !(fds[k].revents & POLLIN));
		if (!e)
			e = tell(r, &r->b->items.data[job.item]);
	}
	r->job_cnt = kept;
	return e;
}

static struct err *run_all(struct batch_run *r)
{
	struct err *e = NULL;
	while (!e && (r->next < r->b->items.cnt || r->job_cnt)) {
		show_progress(r);
		if (atomic_load(cli_stop()))
			e = err_fix(err_new(ERR_CANCELLED, "batch: stopped after %llu of %zu files", (unsigned long long)r->told_cnt,
					    r->b->items.cnt), "the same command goes on");
		else if (r->job_cnt < r->b->jobs && r->next < r->b->items.cnt)
			e = begin(r, r->next++);
		else
			e = wait_some(r);
	}
	for (uint32_t k = 0; k < r->job_cnt; k++) {
		(void)job_fini(&r->jobs[k]);
		remove_part(r, &r->b->items.data[r->jobs[k].item], r->jobs[k].pid);
	}
	return e ? e : tell_twins(r);
}

/* --- the end --- */

static void put_end(const struct batch *b, struct buf *out)
{
	struct json j = json_make(out);
	json_obj(&j);
	put_flag(&j, "end", true);
	json_key(&j, "files");
	json_u64(&j, b->items.cnt);
	for (int s = BATCH_DONE; s < BATCH_STATUS_COUNT; s++) {
		json_key(&j, batch_status_name((enum batch_status)s));
		json_u64(&j, b->counts[s]);
	}
	json_key(&j, "same");
	json_u64(&j, b->same_cnt);
	json_end_obj(&j);
	buf_add_ch(out, '\n');
}

static void put_sum(const struct batch *b, struct buf *out)
{
	static const char *const words[BATCH_STATUS_COUNT] = {NULL, "answered", "failed", "took too long", "crashed", "no program", "skipped"};
	buf_printf(out, "%zu files:", b->items.cnt);
	for (int s = BATCH_DONE; s < BATCH_STATUS_COUNT; s++) {
		if (b->counts[s] || s == BATCH_DONE)
			buf_printf(out, "%s %llu %s", s == BATCH_DONE ? "" : ",", (unsigned long long)b->counts[s], words[s]);
	}
	if (b->same_cnt)
		buf_printf(out, "; %llu are copies of others", (unsigned long long)b->same_cnt);
	buf_add_ch(out, '\n');
}

static int finish(const struct batch *b)
{
	_cleanup_buf_ struct buf text = {0};
	if (b->c->is_json)
		put_end(b, &text);
	else
		put_sum(b, &text);
	int status = cli_print(&text);
	uint64_t bad = b->counts[BATCH_FAILED] + b->counts[BATCH_TIMEOUT] + b->counts[BATCH_CRASHED];
	if (b->is_strict)
		bad += b->counts[BATCH_NO_PROGRAM] + b->counts[BATCH_SKIPPED];
	return status ? status : bad > 0;
}

static struct err *run(struct batch *b)
{
	_cleanup_free_ struct batch_run *r = calloc(1, sizeof(*r));
	if (!r)
		return &err_nomem;
	/* A file that may not grow is an error like a full disk (setrlimit(2)). */
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	r->b = b;
	struct err *e = batch_out_open(b);
	if (!e)
		e = batch_collect(b);
	if (!e)
		e = batch_state_open(b);
	if (!e)
		e = run_all(r);
	cli_progress_end(b->c);
	int status = e ? 0 : finish(b);
	map_fini(&r->by_sha);
	arena_fini(&r->arena);
	b->status = status;
	return e;
}

/* --- words --- */

/* What is an option of batch's own is taken, the rest is the operation's. */
static struct err *split(struct ops_args *own, int argc, char **argv, char **rest, int *ret_cnt)
{
	struct err *e = NULL;
	for (int i = 0; i < argc && !e; i++) {
		const char *word = argv[i];
		bool is_option = word[0] == '-' && word[1] == '-' && word[2];
		size_t len = is_option ? strcspn(word + 2, "=") : 0;
		const struct ops_param *p = is_option ? ops_param_find(own->op, word + 2, len) : NULL;
		if (!p || p->is_positional) {
			rest[(*ret_cnt)++] = argv[i];
			continue;
		}
		const char *value = word[2 + len] == '=' ? word + 3 + len : NULL;
		if (!value && p->type != OPS_FLAG)
			value = i + 1 < argc ? argv[++i] : NULL;
		e = ops_args_set(own, p, value);
	}
	return e;
}

static struct err *check_op(const struct cli *c, const char *name)
{
	const struct ops_param *output = ops_param_find(c->op, "output", 6);
	if (c->project)
		return err_new(ERR_INVALID, "batch: --project is of one binary");
	if (c->socket)
		return err_new(ERR_INVALID, "batch: each file has a process of its own, no server answers for it: --socket is none");
	if (output && c->args.values[output - c->op->params].is_set)
		return err_new(ERR_INVALID, "batch: what %s writes goes to --out", name);
	return ops_param_find(c->op, "raw", 3) && ops_arg_is_set(&c->args, "raw") ? err_new(ERR_INVALID, "batch: answers are JSON, --raw is none")
										   : NULL;
}

static struct err *find_op(const char *name, const struct ops_op **ret)
{
	*ret = name ? ops_find(name) : NULL;
	if (!name)
		return err_fix(err_new(ERR_INVALID, "batch: --op is missing"), "scry help batch");
	if (!*ret || !(*ret)->needs_target)
		return err_fix(err_new(ERR_INVALID, "batch: %s is no operation on a file", name), "scry help lists them");
	return NULL;
}

/* A page is for who looks; here all of a list is wanted. */
static struct err *set_whole(struct cli *c)
{
	for (const struct ops_param *p = c->op->params; p->name; p++) {
		if (!strcmp(p->name, "limit") && !c->args.values[p - c->op->params].is_set)
			return ops_args_set(&c->args, p, "4294967295");
	}
	return NULL;
}

static struct err *read_words(struct batch *b, struct ops_args *own, int argc, char **argv)
{
	struct cli *c = b->c;
	char **rest = ARENA_ARRAY(&c->arena, char *, (size_t)argc + 1);
	int cnt = 0;
	if (!rest)
		return &err_nomem;
	struct err *e = split(own, argc, argv, rest, &cnt);
	if (!e)
		e = find_op(ops_arg_str(own, "op"), &c->op);
	if (e)
		return e;
	ops_args_init(&c->args, c->op, &c->arena);
	e = cli_parse(c, cnt, rest);
	b->source = c->file;
	b->out = ops_arg_str(own, "out");
	if (!e && !b->out)
		e = err_fix(err_new(ERR_INVALID, "batch: --out is missing"), "scry help batch");
	if (!e)
		e = check_op(c, c->op->name);
	return e ? e : set_whole(c);
}

static struct err *read_options(struct batch *b, const struct ops_args *own)
{
	cpu_set_t cpus;
	uint64_t usual = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (uint64_t)CPU_COUNT(&cpus);
	b->jobs = (unsigned)MIN(MAX(ops_arg_u64(own, "jobs", usual), 1u), BATCH_JOBS_MAX);
	b->timeout_ms = MIN(MAX(ops_arg_u64(own, "timeout", 600), 1u), (uint64_t)1 << 32) * 1000;
	b->is_strict = ops_arg_is_set(own, "strict");
	b->is_retry = ops_arg_is_set(own, "retry");
	struct stat st;
	if (!strcmp(b->source, "-"))
		return NULL;
	if (stat(b->source, &st))
		return err_os(errno, "%s", b->source);
	char *real = S_ISDIR(st.st_mode) ? realpath(b->source, NULL) : NULL;
	if (S_ISDIR(st.st_mode) && !real)
		return err_os(errno, "%s", b->source);
	b->dir = real ? arena_strndup(&b->c->arena, real, strlen(real)) : NULL;
	free(real);
	return S_ISDIR(st.st_mode) && !b->dir ? &err_nomem : NULL;
}

int cli_batch(int argc, char **argv)
{
	struct cli c = {0};
	struct batch b = {.c = &c, .out_fd = -1, .state_fd = -1};
	struct ops_args own;
	ops_args_init(&own, ops_find("batch"), &c.arena);
	struct err *e = read_words(&b, &own, argc, argv);
	if (!e)
		e = read_options(&b, &own);
	if (!e)
		e = run(&b);
	int status = e ? cli_fail(e) : b.status;
	if (b.state_fd >= 0)
		close(b.state_fd);
	if (b.out_fd >= 0)
		close(b.out_fd);
	VEC_FREE(&b.items);
	arena_fini(&c.arena);
	return status;
}
