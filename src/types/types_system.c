/* SPDX-License-Identifier: Apache-2.0 */
#include "types/types_system.h"

#include <string.h>

const struct types_system_row *types_system_find(const char *name, size_t len, bool is_tag)
{
	uint32_t lo = 0;
	for (uint32_t hi = types_system_cnt; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;
		int d = strncmp(types_system_names + types_system_rows[mid].name_off, name, len);
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < types_system_cnt; lo++) {
		const struct types_system_row *r = &types_system_rows[lo];
		const char *own = types_system_names + r->name_off;
		if (strncmp(own, name, len) || own[len])
			break;
		if ((r->kind == TYPES_SYSTEM_TAG) == is_tag)
			return r;
	}
	return NULL;
}
