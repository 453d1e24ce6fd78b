/* SPDX-License-Identifier: Apache-2.0 */
#include "arch/a64/a64_int.h"

/*
 * Unallocated encodings of the integer classes, which are most of all code: data that is walked by
 * mistake runs into one of these within a few words. Arm ARM, C4.1; classes that grow with every
 * version of the architecture (vectors, memory, system) are taken as valid.
 */

static bool is_logical_mask(uint32_t w)
{
	unsigned imms = a64_bits(w, 10, 6);
	bool n = a64_bits(w, 22, 1);
	if (n)
		return w >> 31 && imms != 63;
	/* Element size: the highest zero bit of imms; an element of all ones is reserved. */
	for (unsigned size = 5; size > 0; size--) {
		if (!(imms >> size & 1))
			return (imms & ((1u << size) - 1)) != (1u << size) - 1;
	}
	return false;
}

static bool is_valid_imm(uint32_t w)
{
	bool sf = w >> 31;
	unsigned opc = a64_bits(w, 29, 2);
	switch (a64_bits(w, 23, 3)) {
	case 3:
		/* smax and the like with an immediate; addg, subg */
		if ((w & 0x7ff00000) == 0x11c00000)
			return true;
		return sf && !(opc & 1) && !a64_bits(w, 22, 1) && a64_bits(w, 14, 2) == 0;
	case 4:
		return is_logical_mask(w);
	case 5:
		return opc != 1 && (sf || !a64_bits(w, 22, 1));
	case 6:
		return opc != 3 && a64_bits(w, 22, 1) == sf &&
		       (sf || !(a64_bits(w, 21, 1) || a64_bits(w, 15, 1)));
	case 7:
		return opc == 0 && !a64_bits(w, 21, 1) && a64_bits(w, 22, 1) == sf &&
		       (sf || !a64_bits(w, 15, 1));
	default:
		return true;
	}
}

/* Bits 28:21 are 11010110: one and two sources. */
static bool is_valid_source(uint32_t w)
{
	unsigned opcode = a64_bits(w, 10, 6);
	bool sf = w >> 31;
	bool s = a64_bits(w, 29, 1);
	if (a64_bits(w, 30, 1)) {
		unsigned opcode2 = a64_bits(w, 16, 5);
		if (s)
			return false;
		if (opcode2 == 0)
			return opcode < 9 && (opcode != 3 || sf);
		return opcode2 == 1 && sf; /* pointer authentication */
	}
	if (s)
		return opcode == 0 && sf; /* subps */
	if (opcode >= 16 && opcode < 24)
		return ((opcode & 3) == 3) == sf; /* crc32 */
	if (opcode == 0 || opcode == 4 || opcode == 5 || opcode == 12)
		return sf; /* subp, irg, gmi, pacga */
	return opcode == 2 || opcode == 3 || (opcode >= 8 && opcode < 12) ||
	       (opcode >= 24 && opcode < 28);
}

/* Bits 28:24 are 11011: three sources. */
static bool is_valid_madd(uint32_t w)
{
	unsigned op = a64_bits(w, 21, 3);
	bool o0 = a64_bits(w, 15, 1);
	if (a64_bits(w, 29, 2) != 0)
		return false;
	if (op == 0)
		return true;
	if (!(w >> 31))
		return false;
	return op == 1 || op == 5 || ((op == 2 || op == 6) && !o0);
}

static bool is_valid_reg(uint32_t w)
{
	bool sf = w >> 31;
	if ((w & 0x1f000000) == 0x0a000000)
		return sf || !a64_bits(w, 15, 1);
	if ((w & 0x1f200000) == 0x0b000000)
		return a64_bits(w, 22, 2) != 3 && (sf || !a64_bits(w, 15, 1));
	if ((w & 0x1f200000) == 0x0b200000)
		return a64_bits(w, 22, 2) == 0 && a64_bits(w, 10, 3) <= 4;
	if ((w & 0x1f000000) == 0x1b000000)
		return is_valid_madd(w);
	switch (a64_bits(w, 21, 8)) {
	case 0xd0:
		/* adc, sbc; rmif and setf share the class. */
		return a64_bits(w, 10, 6) == 0 || (a64_bits(w, 29, 2) == 1 && a64_bits(w, 10, 5) != 0);
	case 0xd2:
		return a64_bits(w, 29, 1) && !a64_bits(w, 10, 1) && !a64_bits(w, 4, 1);
	case 0xd4:
		return !a64_bits(w, 29, 1) && !a64_bits(w, 11, 1);
	case 0xd6:
		return is_valid_source(w);
	default:
		return false;
	}
}

bool a64_is_valid(uint32_t w)
{
	switch (a64_bits(w, 25, 4)) {
	case 8:
	case 9:
		return is_valid_imm(w);
	case 5:
	case 13:
		return is_valid_reg(w);
	default:
		return true;
	}
}
