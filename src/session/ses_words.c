/* SPDX-License-Identifier: Apache-2.0 */
/* What people would call what known functions take and give: by the names of parameters in prototypes, and by what is known of libc's. */
#include "session/ses_int.h"
#include "session/ses_types.h"

#include <stdlib.h>
#include <string.h>

#define WORD_MAX 32

struct result {
	const char *function, *word;
};

/* By name. */
static const struct result results[] = {
	{"__ctype_b_loc", "ctype"}, {"__errno_location", "errno_ptr"}, {"__sigsetjmp", "jumped"}, {"_setjmp", "jumped"}, {"accept", "fd"},
	{"accept4", "fd"}, {"atoi", "num"}, {"atol", "num"}, {"basename", "base"}, {"bsearch", "found"}, {"calloc", "mem"}, {"creat", "fd"},
	{"dcgettext", "msg"}, {"dirname", "dir"}, {"dlopen", "lib"}, {"dlsym", "symbol"}, {"dup", "fd"}, {"dup2", "fd"}, {"epoll_create1", "fd"},
	{"fdopen", "fp"}, {"fdopendir", "dir"}, {"fgetc", "c"}, {"fgets", "line"}, {"fileno", "fd"}, {"fopen", "fp"}, {"fork", "pid"},
	{"fread", "got"}, {"freopen", "fp"}, {"fwrite", "written"}, {"getc", "c"}, {"getchar", "c"}, {"getcwd", "cwd"}, {"getegid", "gid"},
	{"getenv", "env"}, {"geteuid", "uid"}, {"getgid", "gid"}, {"getgrgid", "gr"}, {"getgrnam", "gr"}, {"gethostbyname", "host"},
	{"getopt", "opt"}, {"getopt_long", "opt"}, {"getpgrp", "pgrp"}, {"getpid", "pid"}, {"getppid", "pid"}, {"getpwnam", "pw"}, {"getpwuid", "pw"},
	{"getservent", "serv"}, {"getuid", "uid"}, {"gmtime", "tm"}, {"isatty", "is_tty"}, {"localtime", "tm"}, {"lseek", "pos"}, {"malloc", "mem"},
	{"mbrlen", "count"}, {"mbrtowc", "count"}, {"mbstowcs", "count"}, {"memchr", "found"}, {"memcmp", "cmp"}, {"memmem", "found"},
	{"memrchr", "found"}, {"mmap", "map"}, {"nl_langinfo", "info"}, {"open", "fd"}, {"open64", "fd"}, {"openat", "fd"}, {"opendir", "dir"},
	{"pipe", "rc"}, {"popen", "fp"}, {"pread", "got"}, {"pwrite", "written"}, {"rawmemchr", "found"}, {"read", "got"}, {"readdir", "entry"},
	{"readlink", "len"}, {"realloc", "mem"}, {"realpath", "path"}, {"recv", "got"}, {"secure_getenv", "env"}, {"send", "sent"},
	{"setlocale", "locale"}, {"socket", "fd"}, {"stpcpy", "end"}, {"strcasecmp", "cmp"}, {"strchr", "found"}, {"strchrnul", "found"},
	{"strcmp", "cmp"}, {"strcoll", "cmp"}, {"strcspn", "len"}, {"strdup", "copy"}, {"strerror", "msg"}, {"strlen", "len"}, {"strncasecmp", "cmp"},
	{"strncmp", "cmp"}, {"strndup", "copy"}, {"strnlen", "len"}, {"strpbrk", "found"}, {"strrchr", "found"}, {"strspn", "len"},
	{"strstr", "found"}, {"strtod", "num"}, {"strtoimax", "num"}, {"strtok", "token"}, {"strtol", "num"}, {"strtoll", "num"}, {"strtoul", "num"},
	{"strtoull", "num"}, {"strtoumax", "num"}, {"sysconf", "limit"}, {"time", "now"}, {"tmpfile", "fp"}, {"ttyname", "tty"}, {"umask", "mask"},
	{"vfork", "pid"}, {"waitpid", "pid"}, {"wcschr", "found"}, {"wcslen", "len"}, {"wcsrtombs", "count"}, {"wcwidth", "width"},
	{"write", "written"},
};

static bool is_ident(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_one_of(const char *s, size_t len, const char *const *list, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (strlen(list[i]) == len && !memcmp(s, list[i], len))
			return true;
	return false;
}

/* What a variable of printed C cannot be called: C's words, types and macros of its header, and what variables are called anyway. */
static bool is_good(const char *s, size_t len)
{
	static const char *const bad[] = {
		"alignas", "asm", "auto", "bool", "break", "case", "char", "complex", "const", "continue", "default", "do", "double", "else", "enum",
		"extern", "float", "for", "goto", "i386", "if", "inline", "int", "linux", "long", "m", "offsetof", "register", "restrict", "return",
		"short", "signed", "sizeof", "static", "struct", "switch", "typedef", "typeof", "union", "unix", "unsigned", "void", "volatile",
		"while", "scry_m",
	};
	bool is_number = len > 1 && strchr("abituv", s[0]), is_upper = true;
	if (!len || len > WORD_MAX || (s[0] >= '0' && s[0] <= '9') || s[0] == '_' || is_one_of(s, len, bad, ARRAY_LEN(bad)))
		return false;
	for (size_t i = 0; i < len; i++) {
		is_number = is_number && (!i || (s[i] >= '0' && s[i] <= '9'));
		is_upper = is_upper && !(s[i] >= 'a' && s[i] <= 'z');
		if (!is_ident(s[i]))
			return false;
	}
	bool is_type = len > 2 && s[len - 2] == '_' && s[len - 1] == 't';
	return !is_number && !is_upper && !is_type && !(len > 5 && !memcmp(s, "scry_", 5)) && !(len > 3 && !memcmp(s, "in_", 3));
}

/* The last word of [s, s + len), when it is not the only one. */
static bool last_word(const char *s, size_t len, const char **ret, size_t *ret_len)
{
	static const char *const tags[] = {"struct", "union", "enum"};
	while (len && !is_ident(s[len - 1]))
		len--;
	size_t end = len;
	while (len && is_ident(s[len - 1]))
		len--;
	*ret = s + len;
	*ret_len = end - len;
	size_t before = len;
	while (before && !is_ident(s[before - 1]))
		before--;
	size_t from = before;
	while (from && is_ident(s[from - 1]))
		from--;
	return *ret_len && before > from && !is_one_of(s + from, before - from, tags, ARRAY_LEN(tags));
}

/* The name of a parameter by its declaration: of a pointer to a function, or an array, it is not the last word. */
static bool word_of_param(const char *s, size_t len, const char **ret, size_t *ret_len)
{
	const char *inner = memmem(s, len, "(*", 2), *array = memchr(s, '[', len);
	if (inner) {
		const char *p = inner + 2;
		for (*ret = p; p < s + len && is_ident(*p); p++)
			;
		*ret_len = (size_t)(p - *ret);
		return true;
	}
	return last_word(s, array ? (size_t)(array - s) : len, ret, ret_len);
}

/* Parameter `arg` of a prototype; false: there is none, or arguments before it go elsewhere than in general registers. */
static bool find_param(struct ses_text t, int arg, const char **ret, size_t *ret_len)
{
	const char *open = memchr(t.s, '(', t.len);
	size_t depth = 0, from = open ? (size_t)(open - t.s) + 1 : 0;
	for (size_t i = open ? from - 1 : t.len; i < t.len; i++) {
		depth += t.s[i] == '(' || t.s[i] == '[';
		if ((t.s[i] == ',' || t.s[i] == ')') && depth == 1) {
			const char *s = t.s + from;
			size_t len = i - from;
			bool is_pointer = memchr(s, '*', len) || memchr(s, '[', len);
			if (!is_pointer && (memmem(s, len, "double", 6) || memmem(s, len, "float", 5) || memmem(s, len, "struct ", 7)))
				return false;
			if (!arg--)
				return word_of_param(s, len, ret, ret_len);
			from = i + 1;
		}
		depth -= t.s[i] == ')' || t.s[i] == ']';
		if (!depth)
			break;
	}
	return false;
}

static int cmp_result(const void *key, const void *row)
{
	const struct ses_text *name = key;
	const struct result *r = row;
	int d = strncmp(name->s, r->function, name->len);
	return d ? d : -(r->function[name->len] != '\0');
}

static const char *result_of(struct ses_text proto)
{
	struct ses_text name = {proto.s, 0};
	const char *open = memchr(proto.s, '(', proto.len), *end = open;
	while (end && end > proto.s && is_ident(end[-1]))
		end--;
	if (!open || end == open)
		return NULL;
	name = ses_text_of(end, (size_t)(open - end));
	const struct result *r = bsearch(&name, results, ARRAY_LEN(results), sizeof(*results), cmp_result);
	return r ? r->word : NULL;
}

bool ses_word(struct ses_snap *sn, uint64_t va, int arg, char *out, size_t cap)
{
	struct arena a = {0};
	uint64_t at = va;
	struct ses_text proto = ses_prototype_at(sn, va, &a, NULL);
	/* A stub of an import has what is said of the import. */
	if (!proto.len) {
		ses_proto_behind_thunks(sn, &at);
		proto = at == va ? proto : ses_prototype_at(sn, at, &a, NULL);
	}
	const char *word = proto.len && arg < 0 ? result_of(proto) : NULL;
	size_t len = word ? strlen(word) : 0;
	bool ok = proto.len && (arg < 0 ? word != NULL : find_param(proto, arg, &word, &len)) && is_good(word, len) && len < cap;
	if (ok) {
		memcpy(out, word, len);
		out[len] = '\0';
	}
	arena_fini(&a);
	return ok;
}
