/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF reader on programs as compilers make them. Two routes to one answer: what it says of an
 * object's code after relocation beside what the system's linker makes of the same object with the
 * same addresses; symbols, relocations and identities beside what readelf prints; compressed
 * sections beside plain ones.
 */
#include "test_format.h"

#include "base/buf.h"
#include "base/file.h"

#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/scry-format-XXXXXX";

static const char source[] =
	/* A weak one is reached through a GOT even where nothing else is, and linkers order theirs
	   as they like. */
	"#ifndef WEAK\n#define WEAK __attribute__((weak))\n#endif\n"
	"extern int puts(const char *); extern int ext_var; extern int maybe(int) WEAK;\n"
	"int common_var[4]; static int local = 3; int global = 4; const char *names[] = "
	"{\"alpha\", \"beta\"};\n"
	"static int helper(int x) { return x * local + global; }\n"
	"int (*table[])(int) = {helper, maybe, 0}; short *shorts = (short *)&global + 1;\n"
	"int pick(int x, long *out) {\n"
	"	switch (x) {\n"
	"	case 0: puts(\"zero\"); return 1; case 1: return ext_var; case 2: puts(names[1]); "
	"return 7;\n"
	"	case 3: return helper(2); case 4: common_var[1] = x; return 3; case 5: "
	"puts(\"five\"); return 9;\n"
	"	case 6: out[1] = (long)&global; return 8; }\n"
	"	global += x; return table[x & 1](x) + (maybe ? maybe(2) : 0); }\n"
	"int entry(int x) { long l[2]; return pick(x, l) + pick(x + 1, l) + (int)l[1]; }\n";

/* Runs a command line in a shell of its own; its exit status, -1 when it did not end by itself. */
static int run_shell(const char *cmd)
{
	pid_t child = fork();
	if (child == 0) {
		execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
		_exit(127);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs a shell command in the test's folder; its status. */
static int run(const char *fmt, ...) _printf_(1, 2);
static int run(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;
	va_start(ap, fmt);
	int n = snprintf(cmd, sizeof(cmd), "cd %s && ", folder);
	n += vsnprintf(cmd + n, sizeof(cmd) - n, fmt, ap);
	va_end(ap);
	snprintf(cmd + n, sizeof(cmd) - n, " >log 2>&1");
	return run_shell(cmd);
}

static void must_run(const char *what, int status)
{
	if (status != 0)
		fail_msg("%s ended with %d; see %s/log", what, status, folder);
}

static bool has_tool(const char *name)
{
	return run("command -v %s", name) == 0;
}

static void write_text(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* A file opened through its mapping. */
struct real {
	struct file *file;
	struct fmt_bin *b;
};

static bool open_path(const char *path, struct real *ret)
{
	struct err *err = file_open(path, &ret->file);
	if (err) {
		err_free(err);
		return false;
	}
	err = fmt_open(ret->file->data, ret->file->len, &ret->b);
	if (err) {
		err_free(err);
		file_close(ret->file);
		return false;
	}
	check_invariants(ret->b);
	return true;
}

static struct real open_real(const char *name)
{
	char path[256];
	struct real r;
	snprintf(path, sizeof(path), name[0] == '/' ? "%.0s%s" : "%s/%s", folder, name);
	if (!open_path(path, &r))
		fail_msg("%s was not opened", path);
	return r;
}

static void close_real(struct real *r)
{
	fmt_bin_free(r->b);
	file_close(r->file);
}

/* A linker script that puts every section where fmt_open() did, and the imports where their slots
 * are. */
static void write_script(const struct fmt_bin *b)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/script", folder);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (size_t i = 0; i < b->imports.cnt; i++) {
		struct fmt_str name = b->symbols.data[b->imports.data[i].symbol].name;
		fprintf(f, "%.*s = 0x%llx;\n", (int)name.len, name.s,
			(unsigned long long)b->imports.data[i].va);
	}
	fprintf(f, "SECTIONS {\n");
	for (size_t i = 0; i < b->sections.cnt; i++) {
		const struct fmt_section *s = &b->sections.data[i];
		if (s->is_alloc && s->mem_len)
			fprintf(f, "%.*s 0x%llx : { *(%.*s) }\n", (int)s->name.len, s->name.s,
				(unsigned long long)s->va, (int)s->name.len, s->name.s);
	}
	const struct fmt_segment *common = find_segment(b, "COMMON");
	if (common)
		fprintf(f, ".common 0x%llx : { *(COMMON) }\n", (unsigned long long)common->va);
	fprintf(f, "}\n");
	assert_int_equal(fclose(f), 0);
}

static void compare_with_linked(const struct fmt_bin *obj, const struct fmt_bin *linked)
{
	size_t compared = 0;
	for (size_t i = 0; i < obj->sections.cnt; i++) {
		const struct fmt_section *s = &obj->sections.data[i];
		if (!s->is_alloc || s->raw_type != SHT_PROGBITS || s->mem_len == 0)
			continue;
		uint8_t *ours = malloc(s->mem_len);
		uint8_t *theirs = malloc(s->mem_len);
		assert_true(ours && theirs);
		assert_int_equal(fmt_read(obj, s->va, ours, s->mem_len), s->mem_len);
		assert_int_equal(fmt_read(linked, s->va, theirs, s->mem_len), s->mem_len);
		for (uint64_t k = 0; k < s->mem_len; k++) {
			if (ours[k] != theirs[k])
				fail_msg("%.*s+0x%llx: 0x%02x, the linker has 0x%02x",
					 (int)s->name.len, s->name.s, (unsigned long long)k,
					 ours[k], theirs[k]);
		}
		compared++;
		free(ours);
		free(theirs);
	}
	assert_true(compared >= 2);
	for (size_t i = 0; i < obj->symbols.cnt; i++) {
		const struct fmt_symbol *s = &obj->symbols.data[i];
		const struct fmt_symbol *other =
			s->bind == FMT_BIND_GLOBAL && !s->is_undefined ? s : NULL;
		for (size_t k = 0; other && k < linked->symbols.cnt; k++) {
			if (linked->symbols.data[k].name.len == s->name.len &&
			    memcmp(linked->symbols.data[k].name.s, s->name.s, s->name.len) == 0)
				assert_int_equal(linked->symbols.data[k].va, s->va);
		}
	}
}

static void check_object(const char *compiler, const char *flags, const char *linker)
{
	must_run("compiler", run("%s -O1 -ffreestanding -fcommon -fno-merge-constants "
				 "-fno-asynchronous-unwind-tables"
				 " -fno-stack-protector -DWEAK= %s -c a.c -o a.o",
				 compiler, flags));
	struct real obj = open_real("a.o");
	assert_int_equal(obj.b->type, FMT_TYPE_OBJECT);
	assert_int_equal(obj.b->findings.list.cnt, 0);
	assert_int_equal(obj.b->imports.cnt, 3);
	assert_int_equal(find_symbol(obj.b, "pick")->type, FMT_SYM_FUNC);
	write_script(obj.b);
	must_run("linker", run("%s --no-relax -z norelro -e entry -T script a.o -o a.out", linker));
	struct real linked = open_real("a.out");
	compare_with_linked(obj.b, linked.b);
	close_real(&linked);
	close_real(&obj);
}

static void test_object_beside_linker(void **state)
{
	check_object("cc", "-m64 -fno-pic", "ld");
	check_object("cc", "-m64 -fpie", "ld");
	check_object("cc", "-m32 -fno-pic", "ld -m elf_i386");
}

static void test_object_beside_linker_a64(void **state)
{
	if (!has_tool("aarch64-linux-gnu-gcc") || !has_tool("aarch64-linux-gnu-ld")) {
		print_message("no AArch64 compiler: not compared with its linker\n");
		skip();
	}
	check_object("aarch64-linux-gnu-gcc", "-fno-pic", "aarch64-linux-gnu-ld");
	check_object("aarch64-linux-gnu-gcc", "-fno-pic -mcmodel=large", "aarch64-linux-gnu-ld");
}

/* References through a GOT: the slot holds the address of its symbol, and code refers to a slot. */
static void check_got(const char *compiler, const char *flags)
{
	must_run("compiler",
		 run("%s -O1 -ffreestanding -fcommon %s -c a.c -o a.o", compiler, flags));
	struct real obj = open_real("a.o");
	const struct fmt_bin *b = obj.b;
	const struct fmt_segment *got = find_segment(b, "GOT");
	assert_non_null(got);
	assert_int_equal(error_finding_cnt(b), 0);
	assert_int_equal(b->findings.list.cnt, 0);
	size_t slots = 0;
	size_t uses = 0;
	for (size_t i = 0; i < b->relocs.cnt; i++) {
		const struct fmt_reloc *r = &b->relocs.data[i];
		assert_true(r->kind != FMT_REL_OTHER);
		slots += r->va >= got->va && r->va < got->va + got->mem_len;
		uses += r->va < got->va && r->target >= got->va &&
			r->target < got->va + got->mem_len;
	}
	assert_int_equal(slots, got->mem_len / (b->bits / 8));
	assert_true(slots >= 2 && uses >= slots);
	bool is_ext_seen = false;
	for (size_t i = 0; i < b->imports.cnt; i++) {
		const struct fmt_import *m = &b->imports.data[i];
		if (!str_is(b->symbols.data[m->symbol].name, "ext_var"))
			continue;
		is_ext_seen = true;
		assert_true(m->got_va >= got->va);
		assert_int_equal(find_reloc(b, m->got_va)->value, m->va);
		assert_int_equal(find_reloc(b, m->got_va)->kind, FMT_REL_IMPORT);
	}
	assert_true(is_ext_seen);
	close_real(&obj);
}

static void test_object_got(void **state)
{
	check_got("cc", "-m64 -fpic");
	check_got("cc", "-m64 -fpic -mcmodel=large");
	check_got("cc", "-m32 -fpic");
	if (has_tool("aarch64-linux-gnu-gcc")) {
		check_got("aarch64-linux-gnu-gcc", "-fPIC");
		check_got("aarch64-linux-gnu-gcc", "-fpic");
	}
}

static void read_section(const struct fmt_bin *b, const char *name, struct arena *arena,
			 const uint8_t **ret, size_t *ret_len)
{
	const struct fmt_section *s = fmt_section_named(b, name);
	if (!s)
		fail_msg("no section %s", name);
	struct err *err = fmt_section_data(b, s, true, arena, ret, ret_len);
	if (err)
		fail_msg("%s: %s", name, err->text);
}

static void compare_sections(const struct fmt_bin *a, const char *a_name, const struct fmt_bin *b,
			     const char *b_name)
{
	struct arena arena = {0};
	const uint8_t *a_data;
	const uint8_t *b_data;
	size_t a_len;
	size_t b_len;
	read_section(a, a_name, &arena, &a_data, &a_len);
	read_section(b, b_name, &arena, &b_data, &b_len);
	assert_int_equal(a_len, b_len);
	assert_true(a_len > 20);
	assert_memory_equal(a_data, b_data, a_len);
	arena_fini(&arena);
}

/* Debug information of an object after relocation is what the linker makes of it. */
static void test_debug_beside_linker(void **state)
{
	static const char *const names[] = {".debug_info", ".debug_aranges", ".debug_line",
					    ".debug_str"};
	must_run("compiler",
		 run("cc -O1 -g -DWEAK= -ffreestanding -fcommon -fno-pic -fno-merge-constants"
		     " -fno-asynchronous-unwind-tables -c a.c -o m.o"));
	/* Merged strings would move. */
	must_run("objcopy",
		 run("objcopy --set-section-flags .debug_str=readonly,debug --set-section-flags "
		     ".debug_line_str=readonly,debug m.o a.o"));
	struct real obj = open_real("a.o");
	write_script(obj.b);
	must_run("linker", run("ld --no-relax -e entry -T script a.o -o a.out"));
	struct real linked = open_real("a.out");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		compare_sections(obj.b, names[i], linked.b, names[i]);
	close_real(&linked);
	close_real(&obj);
}

static void test_compressed(void **state)
{
	must_run("compiler", run("cc -g -O0 -ffreestanding -c a.c -o plain.o"));
	must_run("objcopy", run("objcopy --compress-debug-sections=zlib plain.o zlib.o"));
	must_run("objcopy", run("objcopy --compress-debug-sections=zlib-gnu plain.o gnu.o"));
	struct real plain = open_real("plain.o");
	struct real zlib = open_real("zlib.o");
	struct real gnu = open_real("gnu.o");
	assert_true(fmt_section_named(zlib.b, ".debug_info")->is_compressed);
	compare_sections(plain.b, ".debug_info", zlib.b, ".debug_info");
	compare_sections(plain.b, ".debug_str", zlib.b, ".debug_str");
	const char *gnu_name =
		fmt_section_named(gnu.b, ".zdebug_str") ? ".zdebug_str" : ".debug_str";
	compare_sections(plain.b, ".debug_str", gnu.b, gnu_name);
	if (run("objcopy --compress-debug-sections=zstd plain.o zstd.o") == 0) {
		struct real zstd = open_real("zstd.o");
		assert_true(fmt_section_named(zstd.b, ".debug_info")->is_compressed);
		compare_sections(plain.b, ".debug_info", zstd.b, ".debug_info");
		close_real(&zstd);
	}
	close_real(&gnu);
	close_real(&zlib);
	close_real(&plain);
}

/* A compressed section that claims another size, or more than scry unpacks. */
static void test_compressed_lies(void **state)
{
	static const struct {
		uint64_t claim;
		enum err_kind kind;
	} rows[] = {{1, ERR_BAD_INPUT},
		    {1ull << 40, ERR_BUDGET},
		    {UINT64_MAX, ERR_BUDGET},
		    {100000, ERR_BAD_INPUT}};
	must_run("compiler", run("cc -g -O0 -ffreestanding -gz=zlib -c a.c -o zlib.o"));
	struct real zlib = open_real("zlib.o");
	const struct fmt_section *s = fmt_section_named(zlib.b, ".debug_str");
	assert_non_null(s);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t *bytes = malloc(zlib.file->len);
		assert_non_null(bytes);
		memcpy(bytes, zlib.file->data, zlib.file->len);
		memcpy(bytes + s->file_off + 8, &rows[i].claim, 8);
		struct opened o = open_good(bytes, zlib.file->len);
		struct arena arena = {0};
		const uint8_t *data;
		size_t len;
		struct err *err = fmt_section_data(o.b, fmt_section_named(o.b, ".debug_str"), false,
						   &arena, &data, &len);
		assert_non_null(err);
		assert_int_equal(err->kind, rows[i].kind);
		assert_non_null(strstr(err->text, ".debug_str"));
		err_free(err);
		arena_fini(&arena);
		close_opened(&o);
		free(bytes);
	}
	close_real(&zlib);
}

/* More sections than a symbol's 16 bits can number (SHN_XINDEX, SHT_SYMTAB_SHNDX). */
static void test_many_sections(void **state)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/many.s", folder);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 66000; i++)
		fprintf(f, ".section .d%d,\"a\"\n%s%d: .byte %d\n", i, i % 1000 ? ".Ln" : "name", i,
			i & 127);
	fprintf(f, ".data\n.quad name66000\n.section .last,\"a\"\nname66000: .byte 99\n");
	assert_int_equal(fclose(f), 0);
	must_run("assembler", run("as --64 many.s -o many.o"));
	struct real r = open_real("many.o");
	assert_true(r.b->sections.cnt > 66000);
	static const struct {
		const char *name;
		uint8_t byte;
	} rows[] = {{"name1000", 1000 & 127}, {"name65000", 65000 & 127}, {"name66000", 99}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct fmt_symbol *s = find_symbol(r.b, rows[i].name);
		uint8_t byte = 0;
		assert_non_null(s);
		assert_int_equal(fmt_read(r.b, s->va, &byte, 1), 1);
		assert_int_equal(byte, rows[i].byte);
	}
	assert_int_equal(find_reloc(r.b, fmt_section_named(r.b, ".data")->va)->value,
			 find_symbol(r.b, "name66000")->va);
	close_real(&r);
}

static unsigned long count_lines(const char *cmd)
{
	unsigned long cnt = 0;
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	char line[4096];
	while (fgets(line, sizeof(line), p))
		cnt++;
	pclose(p);
	return cnt;
}

static void compare_build_id(const char *path, const struct fmt_bin *b)
{
	char cmd[512];
	char line[512];
	snprintf(cmd, sizeof(cmd), "readelf -n %s 2>/dev/null", path);
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	char want[256] = "";
	while (fgets(line, sizeof(line), p))
		sscanf(line, " Build ID: %255s", want);
	pclose(p);
	struct buf have = {0};
	buf_add_hexbytes(&have, b->build_id, b->build_id_len);
	buf_add_ch(&have, 0);
	assert_string_equal(have.data, want);
	buf_fini(&have);
}

/* Names, versions, values and sizes of the dynamic symbols, line by line. */
static void compare_symbols(const char *path, const struct fmt_bin *b)
{
	char cmd[512];
	char line[4096];
	char name[2048];
	snprintf(cmd, sizeof(cmd), "readelf --dyn-syms -W %s 2>/dev/null", path);
	FILE *p = popen(cmd, "r");
	assert_non_null(p);
	size_t compared = 0;
	while (fgets(line, sizeof(line), p)) {
		unsigned num;
		unsigned long long value;
		char ndx[32];
		char type[32];
		name[0] = 0;
		if (sscanf(line, " %u: %llx %*s %31s %*s %*s %31s %2047s", &num, &value, type, ndx,
			   name) < 4 ||
		    num == 0)
			continue;
		assert_true(num <= b->symbols.cnt);
		const struct fmt_symbol *s = &b->symbols.data[num - 1];
		assert_true(s->is_dynamic);
		char have[2048];
		snprintf(have, sizeof(have), "%.*s%s%.*s", (int)s->name.len,
			 s->name.s ? s->name.s : "",
			 !s->version.len	 ? ""
			 : s->is_default_version ? "@@"
						 : "@",
			 (int)s->version.len, s->version.s ? s->version.s : "");
		/* Symbols that only name a version (ABS) are printed without it. */
		if (strcmp(type, "SECTION") != 0 && strcmp(ndx, "ABS") != 0)
			assert_string_equal(have, name);
		assert_int_equal(s->is_undefined, strcmp(ndx, "UND") == 0);
		if (s->type != FMT_SYM_TLS && !s->is_undefined)
			assert_int_equal(s->va, value);
		compared++;
	}
	pclose(p);
	assert_true(compared > 50);
}

static void test_beside_readelf(void **state)
{
	static const char *const paths[] = {
		"/bin/ls", "/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"};
	size_t done = 0;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct real r;
		char cmd[512];
		if (!open_path(paths[i], &r))
			continue;
		snprintf(cmd, sizeof(cmd),
			 "readelf -rW %s 2>/dev/null | grep -c '^[0-9a-f]\\{8\\}' | "
			 "awk '{for (i = 0; i < $1; i++) print i}'",
			 paths[i]);
		assert_int_equal(r.b->relocs.cnt, count_lines(cmd));
		compare_build_id(paths[i], r.b);
		compare_symbols(paths[i], r.b);
		close_real(&r);
		done++;
	}
	assert_true(done >= 3);
}

/* Every program of the machine, up to a size: opened, and nothing wrong with it. */
static void test_programs_of_this_machine(void **state)
{
	enum { FILES_MAX = 400, SIZE_MAX_LEN = 2 << 20 };
	struct dirent **list;
	int n = scandir("/usr/bin", &list, NULL, alphasort);
	assert_true(n > 0);
	unsigned opened = 0;
	for (int i = 0; i < n; i++) {
		char path[512];
		struct real r;
		snprintf(path, sizeof(path), "/usr/bin/%s", list[i]->d_name);
		bool is_wanted = list[i]->d_type == DT_REG && opened < FILES_MAX;
		free(list[i]);
		struct stat st;
		if (!is_wanted || stat(path, &st) || st.st_size > SIZE_MAX_LEN ||
		    !open_path(path, &r))
			continue;
		if (r.b->findings.list.cnt)
			fail_msg("%s: %s: %s", path, r.b->findings.list.data[0].what,
				 r.b->findings.list.data[0].why);
		assert_true(r.b->has_entry || r.b->type == FMT_TYPE_SHARED);
		assert_true(r.b->code_starts.cnt > 0);
		close_real(&r);
		opened++;
	}
	free(list);
	assert_true(opened > 20);
}

/* What linkers of today make: packed relative relocations, static-pie, old hash style, x32-less
 * i386. */
static void test_link_variants(void **state)
{
	static const char program[] =
		"#include <stdio.h>\nint main(void) { puts(\"x\"); return 0; }\n";
	write_text("p.c", program);
	static const struct {
		const char *flags;
		enum fmt_type type;
	} rows[] = {
		{"-pie -fpie", FMT_TYPE_PIE},
		{"-no-pie", FMT_TYPE_EXEC},
		{"-static", FMT_TYPE_EXEC},
		{"-static-pie", FMT_TYPE_PIE},
		{"-shared -fpic", FMT_TYPE_SHARED},
		{"-pie -fpie -Wl,-z,pack-relative-relocs", FMT_TYPE_PIE},
		{"-pie -fpie -Wl,--hash-style=sysv", FMT_TYPE_PIE},
		{"-pie -fpie -Wl,-z,noseparate-code -s", FMT_TYPE_PIE},
		{"-pie -fpie -Wl,-z,now -Wl,-N", FMT_TYPE_PIE},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (run("cc -O1 %s p.c -o p", rows[i].flags) != 0)
			continue;
		struct real r = open_real("p");
		if (r.b->findings.list.cnt)
			fail_msg("%s: %s: %s", rows[i].flags, r.b->findings.list.data[0].what,
				 r.b->findings.list.data[0].why);
		assert_int_equal(r.b->type, rows[i].type);
		const struct fmt_symbol *main_sym = find_symbol(r.b, "main");
		assert_true(main_sym || r.b->is_stripped);
		if (!strstr(rows[i].flags, "static")) {
			const struct fmt_import *puts_import = NULL;
			for (size_t k = 0; k < r.b->imports.cnt; k++) {
				if (str_is(r.b->symbols.data[r.b->imports.data[k].symbol].name,
					   "puts"))
					puts_import = &r.b->imports.data[k];
			}
			assert_non_null(puts_import);
			assert_true(puts_import->got_va != 0);
			assert_true(str_is(r.b->symbols.data[puts_import->symbol].library,
					   "libc.so.6"));
		}
		assert_true(r.b->eh_frame.len > 0);
		/* A static program's IRELATIVE words are in no dynamic table. */
		size_t resolvers = 0;
		for (size_t k = 0; k < r.b->relocs.cnt; k++)
			resolvers += r.b->relocs.data[k].kind == FMT_REL_IRELATIVE;
		assert_true((resolvers > 0) == (strstr(rows[i].flags, "static") != NULL));
		close_real(&r);
	}
}

/* What makes an object a kernel module is its .modinfo. */
static void test_module(void **state)
{
	write_text("m.c", "static const char info[] __attribute__((section(\".modinfo\"), used)) = "
			  "\"license=GPL\";\n"
			  "extern int printk(const char *, ...);\n"
			  "int init_module(void) { return printk(\"hello\"); }\n");
	must_run("compiler", run("cc -O1 -ffreestanding -mcmodel=kernel -fno-pie -c m.c -o m.ko"));
	struct real r = open_real("m.ko");
	assert_int_equal(r.b->type, FMT_TYPE_MODULE);
	assert_int_equal(r.b->imports.cnt, 1);
	assert_true(str_is(r.b->symbols.data[r.b->imports.data[0].symbol].name, "printk"));
	assert_false(r.b->has_entry);
	close_real(&r);
}

static int make_folder(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	write_text("a.c", source);
	return 0;
}

static int remove_folder(void **state)
{
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "rm -rf %s", folder);
	return run_shell(cmd);
}

int test_format_real(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_object_beside_linker),
		cmocka_unit_test(test_object_beside_linker_a64),
		cmocka_unit_test(test_object_got),
		cmocka_unit_test(test_debug_beside_linker),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_compressed_lies),
		cmocka_unit_test(test_many_sections),
		cmocka_unit_test(test_beside_readelf),
		cmocka_unit_test(test_programs_of_this_machine),
		cmocka_unit_test(test_link_variants),
		cmocka_unit_test(test_module),
	};
	return cmocka_run_group_tests_name("real programs", tests, make_folder, remove_folder);
}
