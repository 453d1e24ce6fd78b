/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many arguments a call of a function that takes any number has: by its format, by the numbers it is called with, and by what its code
 * does with them. One more than there are does no harm; what is not known for sure has no answer.
 */
#include "decomp/dec.h"
#include "lift/lift_image.h"
#include "session/ses_int.h"
#include "session/ses_types.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_MAX 4096
#define REGS 6

enum how { H_FORMAT, H_SCAN, H_OPEN, H_FCNTL, H_ALL };

/* By name; `at` is the argument that is the format, or the flags. */
struct known {
	const char *name;
	uint8_t how, at;
};

static const struct known table[] = {
	{"__asprintf_chk", H_FORMAT, 2}, {"__dprintf_chk", H_FORMAT, 2}, {"__fprintf_chk", H_FORMAT, 2}, {"__isoc99_fscanf", H_SCAN, 1},
	{"__isoc99_scanf", H_SCAN, 0}, {"__isoc99_sscanf", H_SCAN, 1}, {"__printf_chk", H_FORMAT, 1}, {"__snprintf_chk", H_FORMAT, 4},
	{"__sprintf_chk", H_FORMAT, 3}, {"__syslog_chk", H_FORMAT, 2}, {"asprintf", H_FORMAT, 1}, {"dprintf", H_FORMAT, 1}, {"err", H_FORMAT, 1},
	{"error", H_FORMAT, 2}, {"error_at_line", H_FORMAT, 4}, {"errx", H_FORMAT, 1}, {"fcntl", H_FCNTL, 1}, {"fcntl64", H_FCNTL, 1},
	{"fprintf", H_FORMAT, 1}, {"fscanf", H_SCAN, 1}, {"ioctl", H_ALL, 3}, {"open", H_OPEN, 1}, {"open64", H_OPEN, 1}, {"openat", H_OPEN, 2},
	{"openat64", H_OPEN, 2}, {"prctl", H_ALL, 5}, {"printf", H_FORMAT, 0}, {"snprintf", H_FORMAT, 2}, {"sprintf", H_FORMAT, 1},
	{"sscanf", H_SCAN, 1}, {"syslog", H_FORMAT, 1}, {"warn", H_FORMAT, 0}, {"warnx", H_FORMAT, 0},
};

/* Functions of libc that take a list of arguments and a format. */
static const char *const by_list[] = {"__vasprintf_chk", "__vdprintf_chk", "__vfprintf_chk", "__vprintf_chk", "__vsnprintf_chk", "__vsprintf_chk",
				      "vasprintf", "vdprintf", "vfprintf", "vprintf", "vsnprintf", "vsprintf", "vsyslog"};

static bool is_named(struct ses_text t, const char *name)
{
	return t.len == strlen(name) && !memcmp(t.s, name, t.len);
}

/* The import a call of an address ends in; "" when none. */
static struct ses_text import_name(struct ses_snap *sn, uint64_t va)
{
	uint32_t cnt;
	ses_proto_behind_thunks(sn, &va);
	uint32_t loc = space_loc(sn->space, va);
	const struct image_import *imp = loc == LOC_NONE ? NULL : image_import_at(sn->im, loc);
	const struct image_symbol *syms = image_symbols(sn->im, &cnt);
	return imp && imp->symbol < cnt ? ses_pool(sn, syms[imp->symbol].name) : ses_text_of("", 0);
}

/* --- formats -------------------------------------------------------------------------------------------------------------- */
/* A text of memory that nobody writes to; false: there is none. */
static bool read_text(struct ses_snap *sn, uint64_t va, char *out, size_t cap)
{
	int seg = space_seg_of_va(sn->space, va);
	if (seg < 0 || sn->space->segs[seg].perm & FMT_W || sn->space->segs[seg].is_extern)
		return false;
	size_t len = space_read(sn->space, space_loc(sn->space, va), out, cap);
	return len && memchr(out, '\0', len);
}

static const char *skip_number(const char *p)
{
	while (*p >= '0' && *p <= '9')
		p++;
	return p;
}

/* Of printf: a width or precision that is an argument. */
static const char *skip_field(const char *p, unsigned *cnt)
{
	*cnt += *p == '*';
	return *p == '*' ? p + 1 : skip_number(p);
}

int ses_variadic_format_args(const char *p, bool is_scan)
{
	unsigned cnt = 0;
	while ((p = strchr(p, '%')) != NULL) {
		bool is_dropped = false;
		if (*++p == '%') {
			p++;
			continue;
		}
		p += strspn(p, is_scan ? "'m" : "-+ #0'I");
		if (is_scan) {
			is_dropped = *p == '*';
			p = skip_number(p + is_dropped);
		} else {
			p = skip_field(p, &cnt);
			if (*p == '.')
				p = skip_field(p + 1, &cnt);
		}
		size_t mods = strspn(p, "hljztqmL");
		/* %m of printf is no modifier. */
		if (!is_scan && memchr(p, 'm', mods))
			mods = (size_t)((const char *)memchr(p, 'm', mods) - p);
		bool is_long_double = memchr(p, 'L', mods) != NULL;
		p += mods;
		if (!*p || is_long_double || !strchr(is_scan ? "diouxXeEfFgGaAcsCSpn[" : "diouxXcCsSpnm", *p))
			return -1;
		if (is_scan && *p == '[') {
			p += 1 + (p[1] == '^');
			p = *p ? strchr(p + 1, ']') : NULL;
			if (!p)
				return -1;
		}
		cnt += !is_dropped && *p != 'm';
		p++;
	}
	return (int)cnt;
}

/* --- calls ------------------------------------------------------------------------------------------------------------------ */
static int cmp_name(const void *key, const void *row)
{
	const struct ses_text *name = key;
	const struct known *k = row;
	int d = strncmp(name->s, k->name, name->len);
	return d ? d : -(k->name[name->len] != '\0');
}

static bool takes_list(struct ses_snap *sn, uint64_t va)
{
	struct ses_text name = import_name(sn, va);
	for (size_t i = 0; i < ARRAY_LEN(by_list); i++)
		if (is_named(name, by_list[i]))
			return true;
	return false;
}

/* Of the program's own functions: those that hand their list to one of libc that reads it by a format. */
static bool find_own(struct ses_snap *sn, uint64_t va, struct known *ret, bool *has_result)
{
	uint64_t row_cnt;
	const struct ses_edge_row *rows;
	struct dec_proto proto;
	uint32_t cnt, func = ses_proto_behind_thunks(sn, &va);
	const struct image_func *funcs = image_funcs(sn->im, &cnt);
	if (func >= cnt || !ses_proto_of(sn, func, &proto) || !proto.is_variadic || !proto.int_cnt || proto.vec_cnt)
		return false;
	struct err *e = ses_edges(sn, NULL, &rows, &row_cnt);
	if (e) {
		err_free(e);
		return false;
	}
	*ret = (struct known){.how = H_FORMAT, .at = (uint8_t)(proto.int_cnt - 1)};
	*has_result = proto.result != DEC_R_NONE;
	for (uint64_t i = ses_proto_first_edge(rows, row_cnt, funcs[func].loc); i < row_cnt && rows[i].caller == funcs[func].loc; i++)
		if (takes_list(sn, space_va(sn->space, rows[i].callee)))
			return proto.result == DEC_R_NONE || proto.result == DEC_R_INT;
	return false;
}

static int count_args(struct ses_snap *sn, const struct known *k, const uint64_t *args, unsigned known)
{
	char text[FORMAT_MAX];
	bool has = known >> k->at & 1;
	int n;
	switch (k->how) {
	case H_FORMAT:
	case H_SCAN:
		n = has && read_text(sn, args[k->at], text, sizeof(text)) ? ses_variadic_format_args(text, k->how == H_SCAN) : -1;
		return n < 0 ? -1 : k->at + 1 + n;
	case H_OPEN:
		return k->at + 1 + (!has || args[k->at] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)));
	case H_FCNTL:
		return k->at + 1 + !(has && (args[k->at] == F_GETFD || args[k->at] == F_GETFL || args[k->at] == F_GETOWN));
	default:
		return k->at;
	}
}

bool ses_variadic_sig(struct ses_snap *sn, uint64_t va, const uint64_t *args, unsigned known, struct ir_sig *ret)
{
	static const char ints[REGS][4] = {"rdi", "rsi", "rdx", "rcx", "r8", "r9"};
	const struct ir_machine *m = lift_machine(sn->arch->id);
	struct ses_text name = import_name(sn, va);
	const struct known *row = name.len ? bsearch(&name, table, ARRAY_LEN(table), sizeof(*table), cmp_name) : NULL;
	struct known own;
	bool has_result = true;
	if (!m || m->addr_width != IR_W64 || (!row && (name.len || !find_own(sn, va, &own, &has_result))))
		return false;
	int n = args ? count_args(sn, row ? row : &own, args, known) : REGS;
	if (n < 0)
		return false;
	*ret = (struct ir_sig){.is_variadic = true, .result = IR_LOC_NONE};
	for (int i = 0; i < n && i < REGS; i++)
		ret->args[ret->arg_cnt++] = (struct ir_sig_arg){ir_loc_find(m, ints[i], strlen(ints[i])), IR_W64};
	ret->stack_cnt = (uint8_t)(args && n > REGS ? MIN(n - REGS, 255) : 0);
	if (has_result) {
		ret->result = ir_loc_find(m, "rax", 3);
		ret->result_width = IR_W64;
	}
	return ret->arg_cnt != 0;
}

int ses_variadic_translates(struct ses_snap *sn, uint64_t va)
{
	static const struct known texts[] = {{"dcgettext", 0, 1}, {"dgettext", 0, 1}, {"gettext", 0, 0}};
	struct ses_text name = import_name(sn, va);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (is_named(name, texts[i].name))
			return texts[i].at;
	return -1;
}
