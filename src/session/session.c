/* SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"
