/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_DL_H
#define BASE_DL_H

#include "base/err.h"

#include <stddef.h>

/*
 * Libraries that only some operations need are loaded when first asked for, so that starting up
 * costs no more than any process. A wrapper file declares a table of the functions it calls.
 */
struct dl_sym {
	const char *name;
	void **slot; /* receives the address */
};

/* Loads `soname` ("libcrypto.so.3") and fills the slots, all or none. Call under pthread_once().
 * Error ERR_ENV names the library, what it is for and the Debian package to install. The library is
 * never unloaded. */
_must_use_ struct err *dl_load(const char *soname, const char *what_for, const char *package,
			       const struct dl_sym *syms, size_t sym_cnt);

#endif
