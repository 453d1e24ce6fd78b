/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_IMAGE_SAMPLE_H
#define TESTS_LIB_IMAGE_SAMPLE_H

#include "image/image.h"

/*
 * A made-up analysis: everything an image can hold, random but well-formed, the same for the same seed. Used as
 * the model of round trips and as the seed of mutations.
 */
struct image_sample {
	struct image_data data;
	uint8_t *target; /* the bytes data.space reads */
	size_t target_len;
	uint64_t rng;
};

/* `size`: roughly the bytes of a segment. False when memory ran out. */
bool image_sample_make(struct image_sample *s, uint64_t seed, uint32_t size);
void image_sample_fini(struct image_sample *s);

/* The generator's next number, and one below n (n > 0). */
uint64_t image_sample_rng(struct image_sample *s);
uint32_t image_sample_below(struct image_sample *s, uint64_t n);

#endif
