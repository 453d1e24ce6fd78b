/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names what a file is that scry does not open, so that the refusal says something useful. A table
 * of magic numbers at fixed offsets, the longest first where one begins like another.
 */
#include "format/fmt_int.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

struct magic {
	uint32_t off;
	uint32_t len;
	const char *bytes;
	const char *name;
};

static const struct magic magics[] = {
	{0, 8, "!<arch>\n", "an ar archive (a static library or a .deb); extract a member first"},
	{0, 8, "!<thin>\n", "a thin ar archive"},
	{0, 4, "\xfe\xed\xfa\xce", "a Mach-O program (32-bit, big-endian)"},
	{0, 4, "\xce\xfa\xed\xfe", "a Mach-O program (32-bit)"},
	{0, 4, "\xfe\xed\xfa\xcf", "a Mach-O program (64-bit, big-endian)"},
	{0, 4, "\xcf\xfa\xed\xfe", "a Mach-O program (64-bit)"},
	{0, 4, "\0asm", "a WebAssembly module"},
	{0, 4, "BC\xc0\xde", "LLVM bitcode"},
	{0, 4, "\xde\xc0\x17\x0b", "wrapped LLVM bitcode"},
	{0, 2, "\x1f\x8b", "gzip-compressed data; unpack it first"},
	{0, 6,
	 "\xfd"
	 "7zXZ\0",
	 "xz-compressed data; unpack it first"},
	{0, 4, "\x28\xb5\x2f\xfd", "zstd-compressed data; unpack it first"},
	{0, 3, "BZh", "bzip2-compressed data; unpack it first"},
	{0, 4, "\x04\x22\x4d\x18", "lz4-compressed data; unpack it first"},
	{0, 4, "PK\x03\x04", "a zip archive (also jar and apk); extract a member first"},
	{0, 4, "PK\x05\x06", "an empty zip archive"},
	{0, 6, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive; extract a member first"},
	{0, 4, "Rar!", "a RAR archive; extract a member first"},
	{257, 5, "ustar", "a tar archive; extract a member first"},
	{0, 6, "070701", "a cpio archive; extract a member first"},
	{0, 4, "\xed\xab\xee\xdb", "an RPM package; extract a member first"},
	{0, 4, "dex\n", "an Android DEX file"},
	{0, 4, "hsqs", "a SquashFS image"},
	{0, 4,
	 "\x1b"
	 "Lua",
	 "Lua bytecode"},
	{0, 16, "SQLite format 3\0", "an SQLite database"},
	{0, 4, "%PDF", "a PDF document"},
	{0, 8, "\x89PNG\r\n\x1a\n", "a PNG image"},
	{0, 3, "\xff\xd8\xff", "a JPEG image"},
	{0, 4, "\xd0\x0d\xfe\xed", "a flattened device tree"},
	{0, 4, "\x27\x05\x19\x56", "a U-Boot image"},
	{0x202, 4, "HdrS", "a Linux kernel image (bzImage)"},
	{0, 2, "#!", "a script (its first line names the interpreter)"},
};

static bool has_magic(const uint8_t *bytes, uint64_t len, const struct magic *m)
{
	return len >= (uint64_t)m->off + m->len && memcmp(bytes + m->off, m->bytes, m->len) == 0;
}

static const char *name_mz(const uint8_t *bytes, uint64_t len)
{
	if (len < 0x40)
		return "a DOS program (MZ)";
	uint32_t off = (uint32_t)bytes[0x3c] | (uint32_t)bytes[0x3d] << 8 |
		       (uint32_t)bytes[0x3e] << 16 | (uint32_t)bytes[0x3f] << 24;
	if (off <= len && len - off >= 4 && memcmp(bytes + off, "PE\0\0", 4) == 0)
		return "a PE program (Windows or EFI)";
	if (off <= len && len - off >= 2 && memcmp(bytes + off, "NE", 2) == 0)
		return "an NE program (16-bit Windows)";
	return "a DOS program (MZ)";
}

static bool is_text(const uint8_t *bytes, uint64_t len)
{
	size_t n = len < 4096 ? (size_t)len : 4096;
	for (size_t i = 0; i < n;) {
		uint32_t cp;
		size_t step = utf8_next((const char *)bytes + i, n - i, &cp);
		if (step == 0)
			return n < len && n - i < 4 &&
			       i > 0; /* a character cut at the end of the sample */
		if (cp < 0x20 && cp != '\t' && cp != '\n' && cp != '\r' && cp != '\f' && cp != 0x1b)
			return false;
		i += step;
	}
	return true;
}

static bool is_all_zero(const uint8_t *bytes, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

const char *fmt_looks_like(const uint8_t *bytes, uint64_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(magics); i++) {
		if (has_magic(bytes, len, &magics[i]))
			return magics[i].name;
	}
	if (len >= 2 && memcmp(bytes, "MZ", 2) == 0)
		return name_mz(bytes, len);
	if (len >= 8 && memcmp(bytes, "\xca\xfe\xba\xbe", 4) == 0)
		return bytes[4] == 0 && bytes[5] == 0 && bytes[6] == 0 && bytes[7] < 20
			       ? "a universal Mach-O file"
			       : "a Java class file";
	if (len <= 3 && memcmp(bytes, "\177ELF", (size_t)len) == 0)
		return "the first bytes of an ELF file";
	if (is_all_zero(bytes, len < 65536 ? len : 65536))
		return "zeros";
	return is_text(bytes, len) ? "text" : "unknown data";
}
