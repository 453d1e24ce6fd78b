/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIFT_LIFT_IMAGE_H
#define LIFT_LIFT_IMAGE_H

#include "image/image.h"
#include "lift/lift.h"

/*
 * The function `func` (its number in image_funcs()) of an analysed target, lifted into `arena` with the blocks, jump tables
 * and non-returning callees the analysis found. Errors as lift_func(); not_found when there is no such function.
 */
_must_use_ struct err *lift_image_func(struct arena *arena, const struct image *im, uint32_t func, struct ir_func **ret,
				       struct lift_stats *ret_stats);

#endif
