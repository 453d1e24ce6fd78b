/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_MD5_H
#define BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

/*
 * MD5 (RFC 1321), for protocols that speak it. It finds damage and says nothing against an attacker.
 * md5_begin(), any number of md5_add(), md5_end().
 */
struct md5 {
	uint32_t state[4];
	uint64_t len;      /* bytes so far */
	uint8_t block[64]; /* the last len % 64 of them */
};

void md5_begin(struct md5 *m);
void md5_add(struct md5 *m, const void *bytes, size_t len);
void md5_end(struct md5 *m, uint8_t ret[16]);

#endif
