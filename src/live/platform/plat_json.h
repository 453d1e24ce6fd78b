/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PLATFORM_PLAT_JSON_H
#define LIVE_PLATFORM_PLAT_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* The list of jModulesInfo, `[{"file":"..","triple":".."},..]`: `each` gets the texts, borrowed, "" for a triple that is not there; what has
 * no file is passed over. False when it is no list. */
bool plat_json_modules(const char *s, size_t len, void (*each)(void *ctx, const char *file, const char *triple), void *ctx);

#endif
