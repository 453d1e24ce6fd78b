/* SPDX-License-Identifier: Apache-2.0 */
/* Help, the manual page and the completions, all from the table, so that none can be out of date. */
#include "session/ops_int.h"

#include <string.h>

/* Options of the command line itself, of every operation. */
static const struct { const char *name, *value, *help; } global_opts[] = {
	{"json", NULL, "print the answer as one JSON document"},
	{"color", "WHEN", "never, auto or always; NO_COLOR counts as never"},
	{"project", "P.json", "FILE is a binary of this project, by its label; BINARY!ADDR is FILE and ADDR"},
	{"socket", "SOCKET", "let the server there answer (scry serve) instead of opening FILE"},
	{"no-store", NULL, "keep nothing on disk: analyse in memory"},
	{"no-partial", NULL, "of a large file of another machine fetch all, and analyse it, before it is looked at"},
	{"help", NULL, "say what the command takes"},
};

static const struct { const char *status, *meaning; } exit_statuses[] = {
	{"0", "done"},
	{"1", "what was asked for is not there, or was refused"},
	{"2", "the command line is not right"},
	{"3", "the input is malformed, missing or unreadable, or of a format scry does not know; what could be read is still given"},
	{"4", "the machine lacks something (a privilege, a library); the message says what and what to do"},
	{"5", "reading or writing failed, or scry has a bug"},
	{"130", "interrupted"},
};

/* "--max-bytes" for max_bytes. */
static void put_option(struct buf *out, const char *name)
{
	buf_add_str(out, "--");
	for (const char *p = name; *p; p++)
		buf_add_ch(out, *p == '_' ? '-' : *p);
}

static void put_synopsis(struct buf *out, const struct ops_op *op)
{
	buf_add_str(out, op->name);
	if (op->needs_target)
		buf_add_str(out, " FILE");
	for (const struct ops_param *p = op->params; p->name; p++) {
		if (!p->is_positional)
			continue;
		buf_printf(out, p->is_required ? " %s%s" : " [%s%s]", p->value, p->is_repeated ? "..." : "");
	}
	for (const struct ops_param *p = op->params; p->name; p++) {
		if (!p->is_positional) {
			buf_add_str(out, " [options]");
			break;
		}
	}
}

static void put_padded(struct buf *out, size_t began, size_t width)
{
	while (out->len < began + width)
		buf_add_ch(out, ' ');
	buf_add(out, "  ", 2);
}

void ops_write_usage(struct buf *out)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	buf_add_str(out, "scry FILE...              open the workbench on a program, or on several\n"
			 "scry --project P.json     the same on a project (scry help project_create)\n"
			 "scry --plain FILE...      the same a line at a time, for screen readers\n"
			 "scry --rpc SOCKET FILE    the workbench, steered over a socket as well\n"
			 "scry ui SOCKET METHOD ... ask a live workbench something: scry ui work goto main\n"
			 "scry --keys ghidra FILE   with other keys: ida, ghidra, binja, vim-strict, r2, or a file\n"
			 "scry keys [--preset NAME] every action of the workbench and its keys\n"
			 "scry COMMAND FILE ...     answer one question about it\n\ncommands:\n");
	for (size_t i = 0; i < cnt; i++) {
		size_t began = out->len;
		buf_add(out, "  ", 2);
		put_synopsis(out, &ops[i]);
		while (out->len > began && !strncmp(out->data + out->len - 10, " [options]", 10))
			out->len -= 10;
		put_padded(out, began, 30);
		buf_add_str(out, ops[i].help);
		buf_add_ch(out, '\n');
	}
	buf_add_str(out, "\noptions of every command:\n");
	for (size_t i = 0; i < ARRAY_LEN(global_opts); i++) {
		size_t began = out->len;
		buf_printf(out, "  --%s%s%s", global_opts[i].name, global_opts[i].value ? " " : "", global_opts[i].value ? global_opts[i].value : "");
		put_padded(out, began, 30);
		buf_add_str(out, global_opts[i].help);
		buf_add_ch(out, '\n');
	}
	buf_add_str(out, "\nADDR is 0x401136, a name, NAME+0x10 or file:0x1000. scry help COMMAND says more; scry man prints the manual.\n"
			 "A file whose name is that of a command: ./info, or scry -- info.\n");
}

void ops_write_op_help(struct buf *out, const struct ops_op *op)
{
	buf_add_str(out, "scry ");
	put_synopsis(out, op);
	buf_printf(out, "\n\n%s\n", op->help);
	if (op->details)
		buf_printf(out, "%s\n", op->details);
	buf_add_ch(out, '\n');
	for (const struct ops_param *p = op->params; p->name; p++) {
		if (p->is_served)
			continue;
		size_t began = out->len;
		buf_add(out, "  ", 2);
		if (p->is_positional)
			buf_add_str(out, p->value);
		else
			put_option(out, p->name);
		if (!p->is_positional && p->type != OPS_FLAG)
			buf_printf(out, " %s", p->value ? p->value : "VALUE");
		if (p->alias) {
			buf_add_str(out, ", ");
			put_option(out, p->alias);
		}
		if (p->letter)
			buf_printf(out, ", -%c", p->letter);
		put_padded(out, began, 30);
		buf_add_str(out, p->help);
		buf_add_ch(out, '\n');
	}
	for (size_t i = 0; i < ARRAY_LEN(global_opts); i++) {
		/* No server runs what is the command line's own. */
		if (op->is_command && !strcmp(global_opts[i].name, "socket"))
			continue;
		size_t began = out->len;
		buf_printf(out, "  --%s%s%s", global_opts[i].name, global_opts[i].value ? " " : "", global_opts[i].value ? global_opts[i].value : "");
		put_padded(out, began, 30);
		buf_add_str(out, global_opts[i].help);
		buf_add_ch(out, '\n');
	}
}

/* --- roff --- */

/* Text of ours in roff: a leading dot or quote would be a request, '-' would become a hyphen. */
static void roff_text(struct buf *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		buf_add_str(out, "\\&");
	for (; *s; s++) {
		if (*s == '-')
			buf_add_str(out, "\\-");
		else if (*s == '\\')
			buf_add_str(out, "\\e");
		else
			buf_add_ch(out, *s);
	}
}

static void roff_param(struct buf *out, const struct ops_param *p)
{
	struct buf name = {0};
	if (p->is_positional)
		buf_add_str(&name, p->value);
	else
		put_option(&name, p->name);
	if (!p->is_positional && p->type != OPS_FLAG)
		buf_printf(&name, " %s", p->value ? p->value : "VALUE");
	if (p->alias) {
		buf_add_str(&name, ", ");
		put_option(&name, p->alias);
	}
	if (p->letter)
		buf_printf(&name, ", -%c", p->letter);
	buf_add_ch(&name, 0);
	buf_add_str(out, ".TP\n.B ");
	if (!name.failed)
		roff_text(out, name.data);
	buf_add_ch(out, '\n');
	roff_text(out, p->help);
	buf_add_ch(out, '\n');
	buf_fini(&name);
}

static bool is_common(const struct ops_param *p)
{
	return !strcmp(p->name, "etag") || !strcmp(p->name, "max_bytes") || !strcmp(p->name, "deadline_ms");
}

static void roff_op(struct buf *out, const struct ops_op *op)
{
	struct buf synopsis = {0};
	put_synopsis(&synopsis, op);
	buf_add_ch(&synopsis, 0);
	buf_add_str(out, ".SS ");
	roff_text(out, synopsis.failed ? op->name : synopsis.data);
	buf_add_ch(out, '\n');
	roff_text(out, op->help);
	buf_add_str(out, ".\n");
	if (op->details) {
		roff_text(out, op->details);
		buf_add_ch(out, '\n');
	}
	for (const struct ops_param *p = op->params; p->name; p++) {
		if (!is_common(p) && !p->is_served)
			roff_param(out, p);
	}
	buf_fini(&synopsis);
}

void ops_write_man(struct buf *out)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	buf_printf(out, ".TH SCRY 1 \"\" \"scry %s\" \"User Commands\"\n", SCRY_VERSION);
	buf_add_str(out, ".SH NAME\nscry \\- take a program apart: listing, references, graphs\n"
			 ".SH SYNOPSIS\n.B scry\n.I FILE\n.br\n.B scry\n.I COMMAND FILE\n.RI [ options ]\n"
			 ".SH DESCRIPTION\nscry reads a program (an ELF file), finds its code and data, and shows them. With a file alone and a\n"
			 "terminal it opens the workbench; without a terminal it prints what the file is. With a command it answers one\n"
			 "question, as a table for people or with\n.B \\-\\-json\nas one JSON document,\n"
			 "which is the result the RPC interface gives.\n.PP\n"
			 "A file is analysed the first time it is seen and the result kept in the store, by the SHA\\-256 of its bytes.\n.PP\n"
			 "An address is written 0x401136, or as a name (main), a name and an offset (main+0x10) or an offset in the file\n"
			 "(file:0x1000). Lists longer than a page say so: an answer in JSON has\n.B next\nwhich\n.B \\-\\-cursor\ntakes.\n"
			 ".SH DRIVING A WORKBENCH\n.B scry \\-\\-rpc\n.I SOCKET FILE\nopens the workbench and answers JSON\\-RPC on a unix socket\n"
			 "(a path, or a bare name in a folder of your own), for this user alone.\n.B scry ui\n.RI [ \\-\\-json ]\n"
			 ".I SOCKET METHOD\n.RI [ \"WORD... | NAME=VALUE...\" ]\nasks it something: goto, screen, keys, rename,\n"
			 "any operation that reads;\n.B methods\nlists them all.\n"
			 ".SH OPTIONS OF EVERY COMMAND\n");
	for (size_t i = 0; i < ARRAY_LEN(global_opts); i++) {
		buf_printf(out, ".TP\n.B \\-\\-");
		roff_text(out, global_opts[i].name);
		buf_printf(out, "%s%s\n", global_opts[i].value ? " " : "", global_opts[i].value ? global_opts[i].value : "");
		roff_text(out, global_opts[i].help);
		buf_add_ch(out, '\n');
	}
	for (const struct ops_param *p = ops[0].params; p->name; p++)
		roff_param(out, p);
	buf_add_str(out, ".SH COMMANDS\n");
	for (size_t i = 0; i < cnt; i++)
		roff_op(out, &ops[i]);
	buf_add_str(out, ".SH EXIT STATUS\n");
	for (size_t i = 0; i < ARRAY_LEN(exit_statuses); i++) {
		buf_printf(out, ".TP\n.B %s\n", exit_statuses[i].status);
		roff_text(out, exit_statuses[i].meaning);
		buf_add_ch(out, '\n');
	}
	if (ops_get_front())
		ops_get_front()->man(out);
	buf_add_str(out, ".SH ENVIRONMENT\n.TP\n.B SCRY_STORE\nthe folder of the store; else $XDG_DATA_HOME/scry, else ~/.local/share/scry\n"
			 ".TP\n.B NO_COLOR\nno colour, whatever the terminal\n"
			 ".SH NOTES\nA target that is cut or rewritten while scry has it open is noticed and said; stores through another process's\n"
			 "shared mapping of the file are not.\n");
}

/* --- completions --- */

static void put_op_options(struct buf *out, const struct ops_op *op)
{
	for (const struct ops_param *p = op->params; p->name; p++) {
		if (p->is_positional || p->is_served)
			continue;
		put_option(out, p->name);
		buf_add_ch(out, ' ');
		if (p->alias) {
			put_option(out, p->alias);
			buf_add_ch(out, ' ');
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(global_opts); i++)
		buf_printf(out, "--%s ", global_opts[i].name);
	out->len--;
}

static void write_bash(struct buf *out)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	buf_add_str(out, "# bash completion of scry, made by: scry completion bash\n_scry()\n{\n"
			 "\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=\"\"\n\tCOMPREPLY=()\n"
			 "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"help");
	for (size_t i = 0; i < cnt; i++)
		buf_printf(out, " %s", ops[i].name);
	buf_add_str(out, "\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < cnt; i++) {
		buf_printf(out, "\t%s) words=\"", ops[i].name);
		put_op_options(out, &ops[i]);
		buf_add_str(out, "\" ;;\n");
	}
	buf_add_str(out, "\thelp) words=\"");
	for (size_t i = 0; i < cnt; i++)
		buf_printf(out, "%s%s", i ? " " : "", ops[i].name);
	buf_add_str(out, "\" ;;\n\tesac\n\tif [ \"${COMP_WORDS[1]}\" = completion ]; then\n"
			 "\t\tCOMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$cur\"))\n"
			 "\telif [ \"${cur#-}\" != \"$cur\" ] || [ \"${COMP_WORDS[1]}\" = help ]; then\n"
			 "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\tfi\n}\n"
			 "complete -o filenames -F _scry scry\n");
}

/* Text inside single quotes of zsh's specifications, where ':' and brackets mean something. */
static void zsh_text(struct buf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == ':' || *s == '[' || *s == ']')
			buf_add_ch(out, '\\');
		if (*s == '\'')
			buf_add_str(out, "'\\''");
		else
			buf_add_ch(out, *s);
	}
}

static void write_zsh(struct buf *out)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	buf_add_str(out, "#compdef scry\n# zsh completion of scry, made by: scry completion zsh\n_scry() {\n\tlocal -a commands\n\tcommands=(\n");
	for (size_t i = 0; i < cnt; i++) {
		buf_printf(out, "\t\t'%s:", ops[i].name);
		zsh_text(out, ops[i].help);
		buf_add_str(out, "'\n");
	}
	buf_add_str(out, "\t\t'help:what a command takes'\n\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\t_files\n"
			 "\t\treturn\n\tfi\n\tcase $words[2] in\n");
	for (size_t i = 0; i < cnt; i++) {
		buf_printf(out, "\t%s)\n\t\t_arguments", ops[i].name);
		for (const struct ops_param *p = ops[i].params; p->name; p++) {
			if (p->is_positional || p->is_served)
				continue;
			buf_add_str(out, " \\\n\t\t\t'");
			put_option(out, p->name);
			buf_add_ch(out, '[');
			zsh_text(out, p->help);
			buf_add_ch(out, ']');
			if (p->type != OPS_FLAG) {
				buf_add_ch(out, ':');
				zsh_text(out, p->value ? p->value : "value");
				buf_add_ch(out, ':');
			}
			buf_add_ch(out, '\'');
		}
		for (size_t k = 0; k < ARRAY_LEN(global_opts); k++) {
			buf_printf(out, " \\\n\t\t\t'--%s[", global_opts[k].name);
			zsh_text(out, global_opts[k].help);
			buf_add_str(out, global_opts[k].value ? "]:when:(never auto always)'" : "]'");
		}
		bool is_shell = !strcmp(ops[i].name, "completion");
		buf_printf(out, " \\\n\t\t\t'*:%s' ;;\n", is_shell ? "shell:(bash zsh fish)" : "file:_files");
	}
	buf_add_str(out, "\thelp) _describe command commands ;;\n\tesac\n}\n_scry \"$@\"\n");
}

static void fish_text(struct buf *out, const char *s)
{
	buf_add_ch(out, '\'');
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			buf_add_ch(out, '\\');
		buf_add_ch(out, *s);
	}
	buf_add_ch(out, '\'');
}

static void write_fish(struct buf *out)
{
	size_t cnt;
	const struct ops_op *ops = ops_table(&cnt);
	buf_add_str(out, "# fish completion of scry, made by: scry completion fish\n");
	for (size_t i = 0; i < cnt; i++) {
		buf_printf(out, "complete -c scry -n __fish_use_subcommand -a %s -d ", ops[i].name);
		fish_text(out, ops[i].help);
		buf_add_ch(out, '\n');
		for (const struct ops_param *p = ops[i].params; p->name; p++) {
			if (p->is_positional || p->is_served)
				continue;
			buf_printf(out, "complete -c scry -n '__fish_seen_subcommand_from %s' -l ", ops[i].name);
			for (const char *c = p->name; *c; c++)
				buf_add_ch(out, *c == '_' ? '-' : *c);
			buf_add_str(out, p->type == OPS_FLAG ? " -d " : " -x -d ");
			fish_text(out, p->help);
			buf_add_ch(out, '\n');
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(global_opts); i++) {
		buf_printf(out, "complete -c scry -l %s%s -d ", global_opts[i].name, global_opts[i].value ? " -x -a 'never auto always'" : "");
		fish_text(out, global_opts[i].help);
		buf_add_ch(out, '\n');
	}
	buf_add_str(out, "complete -c scry -n '__fish_seen_subcommand_from completion' -x -a 'bash zsh fish'\n");
}

struct err *ops_write_completion(struct buf *out, const char *shell)
{
	if (!strcmp(shell, "bash"))
		write_bash(out);
	else if (!strcmp(shell, "zsh"))
		write_zsh(out);
	else if (!strcmp(shell, "fish"))
		write_fish(out);
	else
		return err_new(ERR_INVALID, "completion: '%s' is none of bash, zsh, fish", shell);
	return NULL;
}
