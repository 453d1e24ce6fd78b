/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code images of the bench, loaded and called in three ways; each in a process of its own:
 *
 *   bench_image list FILE OUT             where FILE (linked with --emit-relocs) has absolute references, for `copy`
 *   bench_image fixed FILE TENTHS         mapped at the base it was linked for, called in place
 *   bench_image relative FILE TENTHS      a shared object, by the system's loader
 *   bench_image copy FILE LIST TENTHS     copied into a fresh block, writable only while its absolute references are patched
 *   LOAD_NS RUN_NS CALLS RESULT           what it prints
 *
 * TENTHS of the functions are called, each once. They are found through `struct image`, which is a file's entry point, or its
 * dynamic symbol `image`.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct image {
	const int32_t *from, *to; /* each is the distance from itself to a function */
};

/* Imported functions: of the system's loader these, else the same code at addresses the linker was told. */
#define IMPORTS 0x70000000ul
long i0(long x), i1(long x), i2(long x), i3(long x);
long i0(long x)
{
	return x + 1;
}
long i1(long x)
{
	return x ^ 3;
}
long i2(long x)
{
	return x - 2;
}
long i3(long x)
{
	return x + 7;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	/* Of the processor: nothing here waits for a disk, and others are on this machine. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void map_imports(void)
{
	static const uint8_t code[4][16] = {
		{0x48, 0x8d, 0x47, 0x01, 0xc3},             /* lea 1(%rdi), %rax; ret */
		{0x48, 0x89, 0xf8, 0x48, 0x83, 0xf0, 0x03, 0xc3}, /* mov %rdi, %rax; xor $3, %rax; ret */
		{0x48, 0x8d, 0x47, 0xfe, 0xc3},
		{0x48, 0x8d, 0x47, 0x07, 0xc3},
	};
	void *p = mmap((void *)IMPORTS, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != (void *)IMPORTS)
		die("imports");
	memcpy(p, code, sizeof(code));
	if (mprotect(p, 4096, PROT_READ | PROT_EXEC))
		die("imports");
}

struct layout {
	int fd;
	uint64_t entry, base, len; /* of all segments, from page to page */
	unsigned cnt;
	Elf64_Phdr ph[16];
};

static struct layout open_image(const char *path)
{
	struct layout l = {.fd = open(path, O_RDONLY | O_CLOEXEC), .base = UINT64_MAX};
	Elf64_Ehdr h;
	uint64_t end = 0;
	if (l.fd < 0 || pread(l.fd, &h, sizeof(h), 0) != sizeof(h) || h.e_phnum > 16)
		die(path);
	if (pread(l.fd, l.ph, h.e_phnum * sizeof(l.ph[0]), (off_t)h.e_phoff) < 0)
		die(path);
	l.entry = h.e_entry;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		if (l.ph[i].p_type != PT_LOAD)
			continue;
		l.ph[l.cnt] = l.ph[i];
		uint64_t from = l.ph[i].p_vaddr & ~4095ul, to = (l.ph[i].p_vaddr + l.ph[i].p_memsz + 4095) & ~4095ul;
		l.base = from < l.base ? from : l.base;
		end = to > end ? to : end;
		if (l.ph[i].p_memsz != l.ph[i].p_filesz)
			die("memory without bytes in the file");
		l.cnt++;
	}
	l.len = end - l.base;
	return l;
}

static int prot_of(const Elf64_Phdr *p)
{
	return (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) | (p->p_flags & PF_X ? PROT_EXEC : 0);
}

static const struct image *load_fixed(const char *path)
{
	struct layout l = open_image(path);
	for (unsigned i = 0; i < l.cnt; i++) {
		const Elf64_Phdr *p = &l.ph[i];
		uint64_t at = p->p_vaddr & ~4095ul, skip = p->p_vaddr - at;
		void *got = mmap((void *)at, p->p_filesz + skip, prot_of(p), MAP_PRIVATE | MAP_FIXED_NOREPLACE, l.fd, (off_t)(p->p_offset - skip));
		if (got != (void *)at)
			die(path);
	}
	return (const struct image *)l.entry;
}

static const struct image *load_relative(const char *path)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return dlsym(so, "image");
}

/* The list is part of what is loaded: it is mapped, as the file is. */
static const struct image *load_copy(const char *path, const char *list)
{
	struct layout l = open_image(path);
	struct stat st;
	int list_fd = open(list, O_RDONLY | O_CLOEXEC);
	if (list_fd < 0 || fstat(list_fd, &st))
		die(list);
	const uint32_t *refs = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, list_fd, 0);
	uint8_t *to = mmap(NULL, l.len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (refs == MAP_FAILED || to == MAP_FAILED || mprotect(to, l.len, PROT_READ | PROT_WRITE))
		die(list);
	for (unsigned i = 0; i < l.cnt; i++) {
		const Elf64_Phdr *p = &l.ph[i];
		uint64_t skip = p->p_offset & 4095;
		const uint8_t *from = mmap(NULL, p->p_filesz + skip, PROT_READ, MAP_PRIVATE, l.fd, (off_t)(p->p_offset - skip));
		if (from == MAP_FAILED)
			die(path);
		memcpy(to + (p->p_vaddr - l.base), from + skip, p->p_filesz);
		munmap((void *)(uintptr_t)from, p->p_filesz + skip);
	}
	uint64_t delta = (uint64_t)(uintptr_t)to - l.base;
	for (size_t i = 0; i < (size_t)st.st_size / 4; i++) {
		uint64_t v;
		memcpy(&v, to + refs[i], 8);
		v += v - l.base < l.len ? delta : 0;
		memcpy(to + refs[i], &v, 8);
	}
	for (unsigned i = 0; i < l.cnt; i++) {
		uint64_t from = l.ph[i].p_vaddr & ~4095ul, end = (l.ph[i].p_vaddr + l.ph[i].p_memsz + 4095) & ~4095ul;
		if (mprotect(to + (from - l.base), end - from, prot_of(&l.ph[i])))
			die("mprotect");
	}
	return (const struct image *)(l.entry + delta);
}

static int write_list(const char *path, const char *out)
{
	struct layout l = open_image(path);
	struct stat st;
	FILE *f = fopen(out, "we");
	if (!f || fstat(l.fd, &st))
		die(out);
	const uint8_t *b = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, l.fd, 0);
	const Elf64_Ehdr *h = (const void *)b;
	const Elf64_Shdr *sh = (const void *)(b + h->e_shoff);
	for (unsigned i = 0; i < h->e_shnum; i++) {
		if (sh[i].sh_type != SHT_RELA || !(sh[sh[i].sh_info].sh_flags & SHF_ALLOC))
			continue;
		const Elf64_Rela *r = (const void *)(b + sh[i].sh_offset);
		for (size_t k = 0; k < sh[i].sh_size / sizeof(*r); k++) {
			uint32_t off = (uint32_t)(r[k].r_offset - l.base);
			if (ELF64_R_TYPE(r[k].r_info) == R_X86_64_64 && fwrite(&off, 4, 1, f) != 1)
				die(out);
		}
	}
	return fclose(f) != 0;
}

int main(int argc, char **argv)
{
	bool is_copy = argc == 5 && !strcmp(argv[1], "copy");
	if (argc != 4 && !is_copy) {
		fprintf(stderr, "usage: bench_image list|fixed|relative|copy FILE [LIST] OUT|TENTHS\n");
		return 2;
	}
	if (!strcmp(argv[1], "list"))
		return write_list(argv[2], argv[3]);
	int tenths = (int)strtol(argv[argc - 1], NULL, 10);
	map_imports();
	uint64_t began = now_ns();
	const struct image *im = is_copy ? load_copy(argv[2], argv[3]) : !strcmp(argv[1], "fixed") ? load_fixed(argv[2]) : load_relative(argv[2]);
	uint64_t loaded = now_ns();
	uint64_t calls = 0;
	long x = 0;
	for (const int32_t *p = im->from; tenths && p < im->to; p++) {
		if ((p - im->from) % 10 >= tenths)
			continue;
		long (*fn)(long) = (long (*)(long))((uintptr_t)p + (uintptr_t)(intptr_t)*p);
		x = fn(x);
		calls++;
	}
	uint64_t done = now_ns();
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %ld\n", loaded - began, done - loaded, calls, x);
	return 0;
}
