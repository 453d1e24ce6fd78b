/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the operation table as JSON, for python/generate.py. */
#include "python/py_int.h"

#include <stdio.h>

int main(void)
{
	struct buf b = {0};
	py_table_json(&b);
	bool good = !b.failed && fwrite(b.data, 1, b.len, stdout) == b.len && !fflush(stdout);
	buf_fini(&b);
	return good ? 0 : 1;
}
