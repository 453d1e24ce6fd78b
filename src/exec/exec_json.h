/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXEC_EXEC_JSON_H
#define EXEC_EXEC_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the bytes are one JSON text (RFC 8259) of ASCII alone, at most 1,024 levels deep and without line feeds: what a snippet's process
 * hands over is put into an answer as it stands, and must not be able to end that answer. Reads each byte once. */
bool exec_json_is_one(const char *s, size_t len);

#endif
