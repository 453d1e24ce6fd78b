/* SPDX-License-Identifier: Apache-2.0 */
#include "image/space.h"
