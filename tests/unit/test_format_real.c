/* SPDX-License-Identifier: Apache-2.0 */
#include "test_format.h"
int test_format_real(void)
{
	return 0;
}
