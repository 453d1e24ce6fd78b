/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ANALYZED_H
#define TESTS_ANALYZED_H

#include "base/buf.h"
#include "base/file.h"
#include "image/image.h"

/* A file and its analysis, in memory alone: no store, no session. */
struct analyzed {
	struct file *file;
	struct buf bytes;
	struct image *im;
};

/* Zeroed before; analyzed_close() in any case. */
_must_use_ struct err *analyzed_open(const char *path, struct analyzed *ret);
void analyzed_close(struct analyzed *a);

#endif
