/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A project of two made-up sessions in place of session/project.h. The first one's function at FAKE_TEXT is an import that the
 * second one exports at FAKE_TEXT + FAKE_FUNC_LEN; names and strings are two of each.
 */
#include "lib/fake_session.h"

#include "session/project.h"

#include <string.h>

struct ses_project {
	struct ses *ses[2];
	struct ses_place places[2];
	bool has_place[2];
	uint32_t shown;
};

static struct ses_project the_one;

struct err *ses_project_open(const struct ses_project_opts *opts, struct ses_project **ret)
{
	the_one = (struct ses_project){.ses = {fake_open(100), fake_open(100)}};
	*ret = &the_one;
	return NULL;
}

void ses_project_close(struct ses_project *p)
{
	for (int i = 0; p && i < 2; i++)
		ses_close(p->ses[i]);
}

const char *ses_binary_state_name(enum ses_binary_state s)
{
	return s == SES_BINARY_SAME ? "same" : "vanished";
}

const char *ses_find_kind_name(enum ses_find_kind k)
{
	return k == SES_FIND_STRING ? "string" : "function";
}

const char *ses_project_name(const struct ses_project *p)
{
	return "fakes";
}

const char *ses_project_note(const struct ses_project *p)
{
	return NULL;
}

uint32_t ses_project_cnt(struct ses_project *p)
{
	return 2;
}

struct err *ses_project_binary(struct ses_project *p, uint32_t i, struct arena *a, struct ses_binary *ret)
{
	*ret = (struct ses_binary){.label = i ? "second" : "first", .path = i ? "/lib/second" : "/bin/first", .found = "", .why = i ? "is gone" : "",
				   .state = i ? SES_BINARY_VANISHED : SES_BINARY_SAME, .is_open = true, .is_ready = true, .is_indexed = true};
	return NULL;
}

struct err *ses_project_get(struct ses_project *p, uint32_t i, struct ses **ret)
{
	*ret = p->ses[i];
	return NULL;
}

bool ses_project_is_known(struct ses_project *p, uint32_t i)
{
	return true;
}

void ses_project_poke(struct ses_project *p)
{
}

void ses_project_progress(struct ses_project *p, uint32_t *ret_done, uint32_t *ret_cnt)
{
	*ret_done = *ret_cnt = 2;
}

void ses_project_put_place(struct ses_project *p, uint32_t i, const struct ses_place *place)
{
	p->places[i] = *place;
	p->has_place[i] = true;
}

bool ses_project_get_place(struct ses_project *p, uint32_t i, struct ses_place *ret)
{
	*ret = p->places[i];
	return p->has_place[i];
}

void ses_project_put_shown(struct ses_project *p, uint32_t i)
{
	p->shown = i;
}

uint32_t ses_project_get_shown(struct ses_project *p)
{
	return p->shown;
}

static struct ses_text text(const char *s)
{
	return (struct ses_text){s, (uint32_t)strlen(s)};
}

struct err *ses_project_find(struct ses_project *p, const struct ses_call *call, struct ses_find_ask *ask, struct arena *a, struct ses_find **ret)
{
	static const struct { uint32_t binary; enum ses_find_kind kind; uint64_t va; const char *text; } all[] = {
		{0, SES_FIND_FUNCTION, FAKE_TEXT, "near_one"}, {1, SES_FIND_FUNCTION, FAKE_TEXT + 3 * FAKE_FUNC_LEN, "far_one"},
		{0, SES_FIND_STRING, FAKE_STRINGS, "near text"}, {1, SES_FIND_STRING, FAKE_STRINGS, "far text"}};
	*ret = ARENA_ARRAY(a, struct ses_find, 5);
	ask->cnt = 0;
	for (size_t i = 0; i < 4 && ask->cnt < ask->limit; i++) {
		if ((!ask->kinds || ask->kinds & 1u << all[i].kind) && (!ask->filter || strstr(all[i].text, ask->filter)))
			(*ret)[ask->cnt++] = (struct ses_find){.binary = all[i].binary, .kind = all[i].kind, .addr = all[i].va,
							       .text = text(all[i].text), .readable = text("")};
	}
	return NULL;
}

uint64_t ses_project_find_cnt(struct ses_project *p, uint32_t kinds)
{
	return 4;
}

struct err *ses_project_providers(struct ses_project *p, const struct ses_far_ask *ask, struct arena *a, struct ses_providers *ret)
{
	if (ask->binary || ask->va != FAKE_TEXT)
		return &err_not_found;
	*ret = (struct ses_providers){ARENA_NEW(a, struct ses_provider), 1};
	*ret->list = (struct ses_provider){.binary = 1, .addr = FAKE_TEXT + FAKE_FUNC_LEN};
	return NULL;
}

struct err *ses_project_xrefs(struct ses_project *p, const struct ses_call *call, const struct ses_far_ask *ask, struct arena *a,
			      struct ses_far_list *ret)
{
	ret->list = ARENA_ARRAY(a, struct ses_far_xref, 2);
	ret->list[1] = (struct ses_far_xref){0, {.from = FAKE_TEXT + 16, .kind = "offset", .func = text(""), .text = text("dq far")}};
	ret->list[0] = (struct ses_far_xref){0, {.from = FAKE_TEXT + 8, .kind = "call", .func = text("caller"), .text = text("call far")}};
	ret->total = ask->binary == 1 ? 2 : 0;
	ret->cnt = (uint32_t)MIN(ret->total, ask->limit);
	return NULL;
}

struct err *ses_project_join(struct ses_project *p, const char *path, uint32_t *ret)
{
	(void)p;
	(void)path;
	*ret = 1;
	return NULL;
}
