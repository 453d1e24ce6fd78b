/* SPDX-License-Identifier: Apache-2.0 */
/* P.json. What is accepted must be within its limits, and name its binaries by lines that are there. */
#include "fuzz.h"

#include "session/project.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct arena a = {0};
	struct ses_project_text t;
	uint32_t lines = 1;
	for (size_t i = 0; i < len; i++)
		lines += bytes[i] == '\n';
	struct err *e = ses_project_parse((const char *)bytes, len, "P.json", &a, &t);
	if (e) {
		/* Every refusal says where. */
		if (e->kind == ERR_INVALID && !strstr(e->text, "line ") && !strstr(e->text, "is not a JSON object"))
			abort();
		fuzz_rejected++;
	} else {
		if (*t.id && strlen(t.id) != 32)
			abort();
		for (size_t i = 0; i < t.cnt; i++) {
			const struct ses_project_entry *b = &t.list[i];
			if (!b->path || !*b->path || !b->line || b->line > lines || (b->label && strpbrk(b->label, "!/\x1b\n")))
				abort();
		}
		fuzz_accepted++;
	}
	err_free(e);
	arena_fini(&a);
	return 0;
}
