/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/sysc_check.h"

#include "live/trace/trace_event.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel's name of the entry point, where it is another one. */
static const char *entry_name(const char *call)
{
	static const char *const other[][2] = {{"stat", "newstat"}, {"fstat", "newfstat"}, {"lstat", "newlstat"}, {"uname", "newuname"},
					       {"umount2", "umount"}, {"sendfile", "sendfile64"}};
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		if (!strcmp(call, other[i][0]))
			return other[i][1];
	return call;
}

const char *sysc_check_folder(void)
{
	static const char *const at[] = {"/sys/kernel/tracing/events/syscalls", "/sys/kernel/debug/tracing/events/syscalls"};
	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		if (!access(at[i], R_OK))
			return at[i];
	return NULL;
}

/* Lines are "field:const char * filename;\toffset:24;..."; arguments begin at 16, before them is what all events have. */
static void compare(FILE *f, const struct sysc *s, struct sysc_difference *ret)
{
	char line[512];
	*ret = (struct sysc_difference){.s = s};
	while (fgets(line, sizeof(line), f)) {
		char *off = strstr(line, ";\toffset:");
		if (!off || strtoul(off + 9, NULL, 10) < 16)
			continue;
		*off = 0;
		const char *name = strrchr(line, ' ');
		name = name ? name + 1 + strspn(name + 1, "_*") : "";
		ret->same_names += ret->nargs < s->nargs && !strcmp(s->a[ret->nargs].name, name);
		ret->nargs++;
	}
}

size_t sysc_check(const char *folder, sysc_differs_fn *differs, void *ctx)
{
	size_t cnt, seen = 0;
	const struct sysc *all = sysc_all(&cnt);
	for (size_t i = 0; i < cnt; i++) {
		char path[512];
		struct sysc_difference d;
		if (all[i].nr[TRACE_X86_64] < 0 || all[i].flags & SYSC_UNKNOWN)
			continue;
		snprintf(path, sizeof(path), "%s/sys_enter_%s/format", folder, entry_name(all[i].name));
		FILE *f = fopen(path, "re");
		if (!f)
			continue;
		compare(f, &all[i], &d);
		fclose(f);
		seen++;
		if (d.nargs != all[i].nargs || d.same_names != d.nargs)
			differs(ctx, &d);
	}
	return seen;
}
