/* SPDX-License-Identifier: Apache-2.0 */
#include "live/debug/debug_int.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 4 << 20 };

/* "p1a.2b" and "2b": the number of the thread. */
static uint64_t number_of(const char *id)
{
	const char *dot = strchr(id, '.');
	return strtoull(dot ? dot + 1 : id, NULL, 16);
}

static void take_one(struct debug *d, struct debug_thread *t, const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name"));
	char key[16];
	snprintf(key, sizeof(key), "%u", d->regs.list[d->regs.pc].num);
	const char *hex = json_string_value(json_object_get(json_object_get(item, "registers"), key));
	_cleanup_buf_ struct buf bytes = {0};
	if (name)
		snprintf(t->name, sizeof(t->name), "%s", name);
	if (!hex || !gdb_unhex(gdb_span_make(hex, strlen(hex)), 8, &bytes) || !bytes.len)
		return;
	t->pc = 0;
	for (size_t i = bytes.len; i--;)
		t->pc = t->pc << 8 | (uint8_t)bytes.data[i];
	t->has_pc = true;
}

bool debug_take_threads_info(struct debug *d, struct gdb_span text)
{
	/* A short text can be a great many values. */
	json_t *list = text.len > TEXT_MAX ? NULL : json_loadb(text.s, text.len, 0, NULL);
	bool is_list = json_is_array(list);
	size_t cnt = is_list ? MIN(json_array_size(list), (size_t)DEBUG_THREAD_MAX) : 0, at = 0;
	/* Both lists have the same order, nearly always. */
	for (size_t i = 0; i < cnt; i++) {
		const json_t *item = json_array_get(list, i);
		uint64_t tid = (uint64_t)json_integer_value(json_object_get(item, "tid"));
		for (size_t k = 0; k < d->threads.cnt; k++) {
			struct debug_thread *t = &d->threads.data[(at + k) % d->threads.cnt];
			if (number_of(t->id) != tid)
				continue;
			at = (at + k + 1) % d->threads.cnt;
			take_one(d, t, item);
			break;
		}
	}
	json_decref(list);
	return is_list;
}
