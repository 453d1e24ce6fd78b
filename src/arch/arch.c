/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"

#include "arch/a64/a64.h"
#include "arch/x86/x86.h"

#include <string.h>

static const struct {
	const char *name;
	enum arch_id id;
} names[] = {
	{"x86-64", ARCH_ID_X86_64},
	{"i386", ARCH_ID_I386},
	{"aarch64", ARCH_ID_A64},
};

const char *arch_name_at(uint32_t i)
{
	return i < ARRAY_LEN(names) ? names[i].name : NULL;
}

enum arch_id arch_id_of_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i].name, name) == 0)
			return names[i].id;
	}
	return ARCH_ID_NONE;
}

struct err *arch_get(enum arch_id id, const struct arch **ret)
{
	switch (id) {
	case ARCH_ID_X86_64:
		*ret = &x86_64;
		return NULL;
	case ARCH_ID_I386:
		*ret = &x86_i386;
		return NULL;
	case ARCH_ID_A64: {
		struct err *e = a64_load();
		if (!e)
			*ret = &a64_arch;
		return e;
	}
	case ARCH_ID_NONE:
	case ARCH_ID_COUNT:
		break;
	}
	return err_new(ERR_UNSUPPORTED, "no decoder for this architecture");
}
