/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo/dbg.h"
