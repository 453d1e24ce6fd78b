/* SPDX-License-Identifier: Apache-2.0 */
#include "live/trace/probe.h"

/*
 * What the kernel runs at another place when a probe stands on it: arch/x86/kernel/uprobes.c refuses prefixes of segments and `lock`, and
 * opcodes by one table of bytes, by which it judges those of VEX and EVEX instructions, too, whatever they mean there. A file that is
 * mapped only later gets no word of that: the probe is not there, and counts nothing.
 */
static bool is_unstepped(uint8_t op, bool is_64bit)
{
	/* A bit for each opcode, from the lowest of a byte. Those of 64 bits are all; i386 has instructions of its own among them. */
	static const uint8_t in_64[32] = {[0x00] = 0xc0, [0x01] = 0x40, [0x02] = 0xc0, [0x03] = 0xc0, [0x04] = 0xc0, [0x05] = 0xc0,
					  [0x06] = 0xc0, [0x07] = 0xc0, [0x0c] = 0x03, [0x0d] = 0xf0, [0x10] = 0x04, [0x13] = 0x04,
					  [0x19] = 0xf0, [0x1a] = 0x50, [0x1c] = 0xf0, [0x1d] = 0xf4, [0x1e] = 0x13, [0x1f] = 0x0c};
	static const uint8_t in_32[32] = {[0x0d] = 0xf0, [0x19] = 0xf0, [0x1c] = 0xf0, [0x1d] = 0xf0, [0x1e] = 0x12, [0x1f] = 0x0c};
	return (is_64bit ? in_64 : in_32)[op / 8] >> op % 8 & 1;
}

const char *probe_insn_refused(const uint8_t *code, size_t len, bool is_64bit)
{
	size_t i = 0;
	for (; i < len; i++) {
		switch (code[i]) {
		case 0xf0:
			return "the kernel puts no probes on instructions that lock";
		case 0x26: case 0x2e: case 0x36: case 0x3e:
			return "the kernel puts no probes on instructions with such a prefix";
		case 0x64: case 0x65: case 0x66: case 0x67: case 0xf2: case 0xf3:
			continue;
		}
		break;
	}
	if (is_64bit && i < len && (code[i] & 0xf0) == 0x40)
		i++;
	if (i + 1 >= len)
		return NULL;
	uint8_t op = code[i];
	bool has_vex = is_64bit || code[i + 1] >= 0xc0;
	size_t skip = !has_vex ? 0 : op == 0xc5 ? 2 : op == 0xc4 ? 3 : op == 0x62 ? 4 : 0;
	if (skip)
		return i + skip < len && is_unstepped(code[i + skip], is_64bit) ? "the kernel puts no probes on such vector instructions" : NULL;
	if (op == 0x9c)
		return "a probe there would leave the trap flag in what is pushed, and end the program";
	if (op == 0x0f && (code[i + 1] == 0x05 || code[i + 1] == 0x34))
		return "a probe on the instruction of a system call may end the program: scry trace shows those";
	return is_unstepped(op, is_64bit) ? "the kernel puts no probes on such instructions" : NULL;
}
