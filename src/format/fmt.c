/* SPDX-License-Identifier: Apache-2.0 */
#include "format/fmt.h"
