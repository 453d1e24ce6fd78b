/* SPDX-License-Identifier: Apache-2.0 */
/* ui.binaries and ui.switch: the files that are open, and going to one. */
#include "session/project.h"
#include "tui/rpc_verbs.h"

#include <string.h>

static void put(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_str(j, value);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

struct err *tui_verb_binaries(struct tui_call *c)
{
	struct tui *t = c->t;
	struct json j = tui_call_extra(c);
	uint32_t cnt = t->project ? ses_project_cnt(t->project) : 1;
	struct err *e = NULL;
	json_key(&j, "binaries");
	json_arr(&j);
	for (uint32_t i = 0; i < cnt && !e; i++) {
		struct ses_binary b = {.label = name_of(ses_path(t->ses)), .path = ses_path(t->ses), .why = "", .state = SES_BINARY_SAME};
		if (t->project)
			e = ses_project_binary(t->project, i, &c->arena, &b);
		if (e)
			break;
		json_obj(&j);
		put(&j, "name", b.label);
		put(&j, "path", b.path);
		put(&j, "state", ses_binary_state_name(b.state));
		put(&j, "why", b.why);
		json_key(&j, "active");
		json_bool(&j, i == t->bin);
		json_end_obj(&j);
	}
	json_end_arr(&j);
	return e;
}

struct err *tui_verb_switch(struct tui_call *c)
{
	struct tui *t = c->t;
	const char *word = tui_arg_str(c, 0), *addr = tui_arg_str(c, 1);
	struct ses_snap *sn = t->snap;
	struct ses *s = t->ses;
	uint32_t bin = t->bin;
	uint64_t va = 0;
	bool is_own = !strcmp(word, ses_path(s)) || !strcmp(word, name_of(ses_path(s)));
	if (!t->project && !is_own)
		return err_fix(err_new(ERR_NOT_FOUND, "ui.switch: %s is not open", word), "scry FILE1 FILE2... opens several");
	struct err *e = t->project ? ses_project_pick(t->project, word, &bin) : NULL;
	/* Where ADDR is of the other binary it is asked there. */
	if (!e && addr && bin != t->bin)
		e = ses_project_get(t->project, bin, &s);
	if (e)
		return e;
	if (addr) {
		sn = ses_snap_get(s);
		e = ses_resolve(sn, addr, &va);
		if (!e && !ses_is_mapped(sn, va))
			e = err_new(ERR_NOT_FOUND, "0x%llx is not mapped", (unsigned long long)va);
		ses_snap_put(sn);
	}
	if (e)
		return e;
	tui_put_away(t);
	*t->message = '\0';
	t->has_acted = true;
	tui_go_binary(t, bin, addr != NULL, va);
	return NULL;
}
