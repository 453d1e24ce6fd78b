/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies an ELF file: its build-id (NT_GNU_BUILD_ID), or without one the CRC that LLDB takes in its place. */
#include "live/platform/plat_conn.h"

#include "base/cleanup.h"
#include "base/cur.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PHDRS_MAX 4096
#define NOTES_LEN ((size_t)64 << 10)
#define BUILD_ID_MAX 64

static const struct {
	uint16_t machine;
	const char *arch;
} machines[] = {{EM_X86_64, "x86_64"}, {EM_386, "i386"}, {EM_AARCH64, "aarch64"}, {EM_ARM, "arm"}, {EM_RISCV, "riscv64"},
		{EM_PPC64, "powerpc64le"}, {EM_S390, "s390x"}, {EM_MIPS, "mips"}};

static bool read_at(int fd, void *to, size_t len, uint64_t off)
{
	return off <= INT64_MAX && pread(fd, to, len, (off_t)off) == (ssize_t)len;
}

static void put_uuid(char ret[129], const uint8_t *id, size_t len)
{
	for (size_t i = 0; i < len && i < BUILD_ID_MAX; i++)
		snprintf(ret + 2 * i, 3, "%02X", id[i]);
}

static bool find_build_id(const uint8_t *notes, size_t len, bool is_be, char ret[129])
{
	struct cur c = cur_make(notes, len, is_be);
	while (cur_left(&c) >= 12) {
		uint32_t name_len = cur_u32(&c), desc_len = cur_u32(&c), type = cur_u32(&c);
		const uint8_t *name = cur_bytes(&c, ((uint64_t)name_len + 3) & ~3ull);
		const uint8_t *desc = cur_bytes(&c, ((uint64_t)desc_len + 3) & ~3ull);
		if (!name || !desc)
			return false;
		if (type == NT_GNU_BUILD_ID && name_len == 4 && !memcmp(name, "GNU", 4) && desc_len && desc_len <= BUILD_ID_MAX) {
			put_uuid(ret, desc, desc_len);
			return true;
		}
	}
	return false;
}

/* The program headers' notes; both classes and both orders. */
static bool read_build_id(int fd, const uint8_t *head, char ret[129])
{
	bool is_64 = head[EI_CLASS] == ELFCLASS64, is_be = head[EI_DATA] == ELFDATA2MSB;
	struct cur c = cur_make(head, 64, is_be);
	cur_seek(&c, is_64 ? 32 : 28);
	uint64_t off = is_64 ? cur_u64(&c) : cur_u32(&c);
	cur_seek(&c, is_64 ? 54 : 42);
	uint16_t each = cur_u16(&c), cnt = cur_u16(&c);
	uint8_t ph[56];
	size_t need = is_64 ? 56 : 32;
	for (unsigned i = 0; i < cnt && i < PHDRS_MAX && each >= need; i++) {
		if (!read_at(fd, ph, need, off + (uint64_t)i * each))
			return false;
		struct cur p = cur_make(ph, need, is_be);
		if (cur_u32(&p) != PT_NOTE)
			continue;
		cur_seek(&p, is_64 ? 8 : 4);
		uint64_t at = is_64 ? cur_u64(&p) : cur_u32(&p);
		cur_seek(&p, is_64 ? 32 : 16);
		uint64_t len = MIN(is_64 ? cur_u64(&p) : (uint64_t)cur_u32(&p), (uint64_t)NOTES_LEN);
		_cleanup_free_ uint8_t *notes = malloc(len ? len : 1);
		if (notes && read_at(fd, notes, len, at) && find_build_id(notes, len, is_be, ret))
			return true;
	}
	return false;
}

/* CRC-32 of the whole file, as .gnu_debuglink has it ("Separate Debug Files" in the manual of gdb). */
static bool read_crc(int fd, char ret[129])
{
	static uint32_t table[256];
	uint32_t crc = ~0u;
	_cleanup_free_ uint8_t *block = malloc(NOTES_LEN);
	for (unsigned i = 0; i < 256 && !table[255]; i++) {
		uint32_t v = i;
		for (unsigned bit = 0; bit < 8; bit++)
			v = v >> 1 ^ (v & 1 ? 0xedb88320u : 0);
		table[i] = v;
	}
	uint64_t off = 0;
	for (ssize_t n = 1; block && n > 0; off += (uint64_t)n) {
		n = pread(fd, block, NOTES_LEN, (off_t)off);
		if (n < 0)
			return false;
		for (ssize_t i = 0; i < n; i++)
			crc = crc >> 8 ^ table[(crc ^ block[i]) & 0xff];
	}
	crc = ~crc;
	const uint8_t bytes[4] = {(uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16), (uint8_t)(crc >> 24)};
	put_uuid(ret, bytes, 4);
	return block;
}

static const char *arch_of(const uint8_t *head)
{
	uint16_t machine = load_u16(head + 18, head[EI_DATA] == ELFDATA2MSB);
	for (size_t i = 0; i < ARRAY_LEN(machines); i++)
		if (machines[i].machine == machine)
			return machines[i].arch;
	return "unknown";
}

/* Whether a client that means this triple can take such a file; i686 and the like are i386's. */
static bool is_of(struct gdb_span triple, const char *arch)
{
	struct gdb_span first, rest;
	gdb_split(triple, '-', &first, &rest);
	if (!first.len || gdb_span_is(first, "unknown") || gdb_span_is(first, arch))
		return true;
	return !strcmp(arch, "i386") && first.len == 4 && first.s[0] == 'i' && !memcmp(first.s + 2, "86", 2);
}

int plat_module_read(struct plat_root *root, const char *path, struct gdb_span triple, struct plat_module *ret)
{
	uint8_t head[64] = {0};
	struct stat st;
	*ret = (struct plat_module){0};
	int status = plat_normal(root, path, ret->path);
	if (status < 0)
		return status;
	_cleanup_close_ int fd = plat_open(root, path, O_RDONLY, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISREG(st.st_mode) || !read_at(fd, head, sizeof(head), 0) || memcmp(head, ELFMAG, SELFMAG))
		return -ENOEXEC;
	ret->arch = arch_of(head);
	ret->len = (uint64_t)st.st_size;
	if (!is_of(triple, ret->arch))
		return -ENOEXEC;
	return read_build_id(fd, head, ret->uuid) || read_crc(fd, ret->uuid) ? 0 : -EIO;
}
