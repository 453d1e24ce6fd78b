/* SPDX-License-Identifier: Apache-2.0 */
#include "live/platform/plat_json.h"

#include <jansson.h>

#define MODULES_MAX 4096

bool plat_json_modules(const char *s, size_t len, void (*each)(void *ctx, const char *file, const char *triple), void *ctx)
{
	json_t *list = json_loadb(s, len, JSON_REJECT_DUPLICATES, NULL);
	bool is_list = json_is_array(list);
	for (size_t i = 0; is_list && i < json_array_size(list) && i < MODULES_MAX; i++) {
		const json_t *item = json_array_get(list, i);
		const char *file = json_string_value(json_object_get(item, "file")), *triple = json_string_value(json_object_get(item, "triple"));
		if (file)
			each(ctx, file, triple ? triple : "");
	}
	json_decref(list);
	return is_list;
}
