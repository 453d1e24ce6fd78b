/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/arch.h"
