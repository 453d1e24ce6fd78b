/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dl.h"

#include <dlfcn.h>

struct err *dl_load(const char *soname, const char *what_for, const char *package,
		    const struct dl_sym *syms, size_t sym_cnt)
{
	void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		struct err *e = err_new(ERR_ENV, "%s cannot be loaded, which %s needs", soname, what_for);
		return err_fix(e, "install the package %s", package);
	}
	for (size_t i = 0; i < sym_cnt; i++) {
		if (!dlsym(lib, syms[i].name)) {
			dlclose(lib);
			return err_new(ERR_ENV, "%s has no %s: a version scry does not know", soname,
				       syms[i].name);
		}
	}
	for (size_t i = 0; i < sym_cnt; i++)
		*syms[i].slot = dlsym(lib, syms[i].name);
	return NULL;
}
