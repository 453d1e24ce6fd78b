/* SPDX-License-Identifier: Apache-2.0 */
/* The table: every operation, what it takes and what its columns are. Nothing here does anything. */
#include "session/ops_int.h"

#include <string.h>

#define P_LIST                                                                                                          \
	{.name = "limit", .type = OPS_INT, .alias = "count", .value = "N", .help = "at most N items (JSON: 1000)"},     \
	{.name = "offset", .type = OPS_INT, .value = "N", .help = "begin with item N, from 0"},                         \
	{.name = "cursor", .type = OPS_STRING, .value = "C", .help = "go on where an answer's next says"}

#define P_FILTER {.name = "filter", .type = OPS_STRING, .value = "GLOB", .help = "only what matches: * and ?, else a part of the text"}
#define P_SORT {.name = "sort", .type = OPS_STRING, .value = "KEY", .help = "order by a column, -KEY the other way round"}

#define P_COMMON                                                                                                        \
	{.name = "etag", .type = OPS_STRING, .value = "TAG", .help = "say only whether an answer with this etag still holds"}, \
	{.name = "max_bytes", .type = OPS_INT, .value = "N", .help = "cut the answer at an item's edge near N bytes"},   \
	{.name = "deadline_ms", .type = OPS_INT, .value = "N", .help = "give up after N milliseconds"},                  \
	{NULL}

#define P_ADDR(req, text) {.name = "addr", .type = OPS_ADDR, .is_positional = true, .is_required = req, .value = "ADDR", .help = text}
#define P_FUNC(req, text) {.name = "func", .type = OPS_FUNC, .is_positional = true, .is_required = req, .value = "FUNC", .help = text}
/* Of what is read piece by piece; its list ends with it. */
#define P_STREAM \
	{.name = "limit", .type = OPS_INT, .value = "N", .is_served = true, .help = "items in an answer at most (1000)"}, \
	{.name = "wait_ms", .type = OPS_INT, .value = "N", .is_served = true, .help = "wait so long for that many, or for the end (2000)"}, {NULL}
#define P_FLAG(n, text) {.name = n, .type = OPS_FLAG, .help = text}

static const struct ops_param p_plain[] = {P_COMMON};
static const struct ops_param p_list[] = {P_LIST, P_FILTER, P_SORT, P_COMMON};
static const struct ops_param p_segments[] = {P_LIST, P_FILTER, P_COMMON};
static const struct ops_param p_strings[] = {
	{.name = "min", .type = OPS_INT, .value = "N", .help = "only strings of at least N bytes (all)"}, P_LIST, P_FILTER, P_SORT, P_COMMON};
static const struct ops_param p_heads[] = {
	P_ADDR(false, "where to begin; main or the entry when left out"),
	{.name = "count", .type = OPS_INT, .alias = "limit", .value = "N", .help = "lines (200)"},
	P_FLAG("back", "the lines that end just before ADDR"),
	{.name = "sub", .type = OPS_INT, .value = "K", .help = "begin with line K of the item at ADDR"},
	{.name = "cursor", .type = OPS_STRING, .value = "C", .help = "go on where an answer's next says"}, P_COMMON};
static const struct ops_param p_disasm[] = {P_FUNC(true, "the function, or an address inside it"), P_LIST, P_COMMON};
static const struct ops_param p_decompile[] = {
	P_FUNC(false, "the function, or an address inside it"), P_FLAG("map", "which instructions each line comes from"),
	P_FLAG("fresh", "make it again, whatever a server has kept"), P_FLAG("all", "every function, with --output"),
	{.name = "output", .type = OPS_STRING, .letter = 'o', .value = "DIR", .help = "write files that compile, with scry.h and a Makefile"},
	P_COMMON};
static const struct ops_param p_verify[] = {
	{.name = "func", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "FUNC",
	 .help = "functions, or addresses inside them"},
	P_FLAG("all", "every function"),
	{.name = "seeds", .type = OPS_INT, .value = "N", .help = "states to try for each (16)"},
	{.name = "cpu_ms", .type = OPS_INT, .value = "N", .help = "milliseconds of the processor a run may take (10)"},
	P_FLAG("fresh", "run again, whatever the store knows"),
	P_FLAG("bisect", "of what differs, find the first stage of the decompiler, or its rule, that makes it differ"),
	P_FLAG("quick", "compile with tcc where it takes the C; a difference is judged again with gcc, and what tcc alone says is not kept"),
	{.name = "seed", .type = OPS_INT, .value = "N", .help = "the first state's number (0)"},
	{.name = "input", .type = OPS_STRING, .value = "TEXT", .help = "one run on a counterexample: 'seed 3: rdi=0x5, else zero'"},
	P_FLAG("yes_run_target", "agree to running code of this file, once and for all"), P_LIST, P_COMMON};
#define P_ARGS                                                                                                          \
	{.name = "args", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "ARGS",                        \
	 .help = "-5, 0x1f, 1.5, 1.5f, text, buf:N, buf:HEX, out:N, addr:NAME, str:TEXT"},                                        \
	{.name = "ret", .type = OPS_CHOICE, .choices = "int|uint|long|ulong|double|float|ldouble|void", .value = "TYPE",                 \
	 .help = "what it returns, when no prototype says it"},                                                                  \
	{.name = "timeout_ms", .type = OPS_INT, .value = "N", .help = "milliseconds until it is killed (2000)"},                 \
	P_FLAG("yes_run_target", "agree to running code of this file, once and for all")
static const struct ops_param p_native_build[] = {
	{.name = "func", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "FUNC",
	 .help = "functions, or addresses inside them"},
	P_FLAG("all", "every function"),
	{.name = "output", .type = OPS_STRING, .letter = 'o', .value = "IMG", .help = "the image to write"}, {NULL}};
static const struct ops_param p_native_run[] = {
	{.name = "image", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "IMG", .help = "what native build wrote"},
	{.name = "func", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "FUNC", .help = "the function"},
	P_ARGS, {NULL}};
static const struct ops_param p_call[] = {P_FUNC(true, "the function"), P_ARGS, {NULL}};
static const struct ops_param p_blocks[] = {P_FUNC(true, "the function, or an address inside it"),
					    P_FLAG("dot", "as a graph in the DOT language"),
					    P_FLAG("svg", "as a drawing"), P_LIST, P_COMMON};
static const struct ops_param p_xrefs[] = {P_ADDR(true, "the place referred to, or the place that refers"),
					   P_FLAG("to", "references to ADDR (this is what happens anyway)"),
					   P_FLAG("from", "references that leave the item at ADDR"),
					   P_FLAG("whole", "with --from: those of the whole function"), P_LIST, P_FILTER, P_COMMON};
static const struct ops_param p_look[] = {P_ADDR(true, "a function, or what else stands there"), P_LIST, P_COMMON};
static const struct ops_param p_reference[] = {
	{.name = "word", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "WORD", .help = "what it is about; all of them"},
	P_LIST, P_COMMON};
static const struct ops_param p_callgraph[] = {
	P_FUNC(false, "begin here; the whole program when left out"),
	{.name = "depth", .type = OPS_INT, .value = "N", .help = "follow calls N deep from FUNC (1)"},
	P_FLAG("dot", "as a graph in the DOT language"), P_FLAG("svg", "as a drawing"), P_LIST, P_FILTER, P_COMMON};
static const struct ops_param p_resolve[] = {
	{.name = "name", .type = OPS_STRING, .is_positional = true, .is_required = true, .is_repeated = true, .value = "NAME",
	 .help = "names, addresses, NAME+0x10, file:0x1000"}, P_COMMON};
static const struct ops_param p_bytes[] = {
	P_ADDR(true, "where to begin"),
	{.name = "len", .type = OPS_INT, .is_positional = true, .is_required = true, .value = "N", .help = "how many bytes"},
	P_FLAG("raw", "the bytes themselves on stdout"), P_FLAG("hexdump", "as a hex dump (this is what people see anyway)"), P_COMMON};
static const struct ops_param p_search[] = {
	{.name = "bytes", .type = OPS_STRING, .value = "'DE AD ?? EF'", .help = "bytes in hex, ? for any digit"},
	{.name = "text", .type = OPS_STRING, .value = "S", .help = "text, as UTF-8 and as UTF-16"},
	{.name = "regex", .type = OPS_STRING, .value = "R", .help = "a Perl-compatible regular expression over the bytes"},
	{.name = "imm", .type = OPS_INT, .value = "N", .help = "instructions with this number or address in them"},
	{.name = "insn", .type = OPS_STRING, .value = "GLOB", .help = "instructions whose text matches, as in 'call *malloc*'"},
	{.name = "c", .type = OPS_STRING, .value = "PATTERN", .help = "C with holes, as in 'memcpy($a, $b, strlen($b))'; ... is anything"},
	{.name = "from", .type = OPS_ADDR, .value = "ADDR", .help = "begin here"},
	P_FLAG("back", "towards lower addresses"),
	{.name = "limit", .type = OPS_INT, .alias = "count", .value = "N", .help = "at most N hits (1000)"},
	{.name = "cursor", .type = OPS_STRING, .value = "C", .help = "go on where an answer's next says"}, P_COMMON};
#define P_AUTHOR                                                                                                        \
	{.name = "author", .type = OPS_STRING, .value = "A", .help = "in whose name (your login name)"},                \
	{.name = "author_kind", .type = OPS_CHOICE, .choices = "human|agent|script", .value = "K", .help = "human, agent or script (human)"}, \
	{.name = "note", .type = OPS_STRING, .value = "S", .help = "why, for the journal"}

#define P_EDIT                                                                                                          \
	{.name = "if_rev", .type = OPS_INT, .value = "R", .help = "refuse when what it touches changed after revision R"}, \
	P_FLAG("dry_run", "say what would happen, change nothing"), P_AUTHOR,                                           \
	{.name = "deadline_ms", .type = OPS_INT, .value = "N", .help = "give up after N milliseconds"}, {NULL}

#define P_VALUE(n, req, v, text) {.name = n, .type = OPS_STRING, .is_positional = true, .is_required = req, .value = v, .help = text}

static const struct ops_param p_rename[] = {
	P_ADDR(false, "what to name"), P_VALUE("name", false, "NAME", "its new name; '' gives back the name it had"),
	{.name = "from", .type = OPS_JSON, .value = "MAP.json", .help = "many at once: {\"0x401136\":\"name\", \"old\":\"new\"}; - is stdin"},
	P_FLAG("atomic", "with --from: one refusal refuses all"), P_EDIT};
static const struct ops_param p_comment[] = {
	P_ADDR(true, "where"), P_VALUE("text", true, "TEXT", "what to say; '' takes it away"),
	{.name = "kind", .type = OPS_CHOICE, .choices = "line|block|repeatable|func", .value = "K",
	 .help = "line (behind it), block (lines before it), repeatable (also at every reference), func"}, P_EDIT};
static const struct ops_param p_bookmark[] = {
	P_ADDR(true, "where"), P_VALUE("text", true, "TEXT", "what it is; '' takes it away"), P_EDIT};
#define P_LEN(text) {.name = "len", .type = OPS_INT, .value = "N", .help = text}
#define P_COUNT {.name = "count", .type = OPS_INT, .value = "N", .help = "so many of them, one behind the other"}

static const struct ops_param p_define[] = {
	P_ADDR(true, "where it begins"),
	P_VALUE("what", true, "WHAT", "code, func, data:TYPE, array, string or string:KIND; auto takes back what was stated"),
	{.name = "type", .type = OPS_STRING, .value = "TYPE", .help = "of an array: a C type, or byte, word, dword, qword"}, P_COUNT,
	P_LEN("of a string: so many bytes"), {.name = "end", .type = OPS_ADDR, .value = "ADDR", .help = "of func: where it ends"}, P_EDIT};
static const struct ops_param p_undefine[] = {P_ADDR(true, "where to begin"), P_LEN("so many bytes (the item there)"), P_EDIT};
static const struct ops_param p_make_data[] = {
	P_ADDR(true, "where it begins"), P_VALUE("type", true, "TYPE", "a C type, or byte, word, dword, qword"), P_COUNT, P_EDIT};
static const struct ops_param p_make_string[] = {
	P_ADDR(true, "where it begins"),
	{.name = "kind", .type = OPS_CHOICE, .choices = "c|c16|c32|pascal", .value = "K", .help = "c, c16, c32 (ended by a zero), pascal (c)"},
	P_LEN("so many bytes, zero and all (up to the zero)"), P_EDIT};
static const struct ops_param p_bounds[] = {
	P_ADDR(true, "where the function begins"),
	P_VALUE("pieces", true, "END|FROM-TO,...", "where it ends, or its pieces; '' takes them back"), P_EDIT};
static const struct ops_param p_flags[] = {
	P_ADDR(true, "where the function begins"),
	P_VALUE("flags", true, "FLAGS", "noreturn, returns, library, thunk, thunk=ADDR, with commas between; '' takes them back"), P_EDIT};
static const struct ops_param p_jump_table[] = {
	P_ADDR(true, "the jump"), {.name = "table", .type = OPS_ADDR, .value = "ADDR", .help = "where its table begins"},
	{.name = "count", .type = OPS_INT, .value = "N", .help = "entries"},
	{.name = "size", .type = OPS_INT, .value = "N", .help = "bytes of an entry (4)"},
	{.name = "base", .type = OPS_ADDR, .value = "ADDR", .help = "entries are distances from here (addresses)"},
	{.name = "shift", .type = OPS_INT, .value = "N", .help = "... in units of 2^N bytes (0)"}, P_FLAG("signed", "entries may be negative"),
	{.name = "low", .type = OPS_STRING, .value = "N", .help = "value of the switch for the first entry (0)"},
	P_FLAG("none", "take back what was stated"), P_EDIT};
static const struct ops_param p_load[] = {
	{.name = "processor", .type = OPS_STRING, .value = "P", .help = "x86-64, i386, aarch64; auto: as the file says"},
	{.name = "base", .type = OPS_STRING, .value = "ADDR", .help = "where the lowest byte is loaded, in hex; auto: as the file says"},
	{.name = "format", .type = OPS_CHOICE, .choices = "raw|auto", .value = "F", .help = "raw: nothing but bytes; auto: as the file says"},
	P_EDIT};
static const struct ops_param p_patch[] = {
	P_ADDR(true, "where"), P_VALUE("bytes", true, "'DE AD'", "bytes in hex that are shown in place of the file's"), P_EDIT};
static const struct ops_param p_unpatch[] = {P_ADDR(true, "where the patch begins"), P_EDIT};
static const struct ops_param p_declare[] = {
	P_VALUE("text", false, "'struct s {...};'", "C declarations, as many as you like"),
	{.name = "over", .type = OPS_STRING, .value = "NAME", .help = "they take the place of what is declared as NAME"},
	{.name = "header", .type = OPS_STRING, .value = "X.h", .help = "in place of the text: a header file, preprocessed by the compiler"},
	{.name = "include", .type = OPS_STRING, .is_repeated = true, .value = "DIR",
	 .help = "with --header: look for other headers there; may be repeated"},
	{.name = "define", .type = OPS_STRING, .is_repeated = true, .value = "NAME=V", .help = "with --header: a macro; may be repeated"},
	{.name = "target", .type = OPS_STRING, .value = "TRIPLE", .help = "with --header: for this machine in place of the program's own"}, P_EDIT};
static const struct ops_param p_undeclare[] = {P_VALUE("name", true, "NAME", "a type, tag or function that was declared"), P_EDIT};
static const struct ops_param p_retype[] = {
	P_ADDR(true, "the data"), P_VALUE("type", true, "TYPE", "its C type, as in 'struct pair [4]'; '' takes it away"), P_EDIT};
static const struct ops_param p_set_prototype[] = {
	P_ADDR(true, "the function or import"), P_VALUE("prototype", true, "'int f(char *, ...)'", "its C prototype; '' takes it away"), P_EDIT};
static const struct ops_param p_format[] = {
	P_ADDR(true, "the instruction or datum"),
	{.name = "operand", .type = OPS_INT, .is_positional = true, .is_required = true, .value = "N",
	 .help = "which operand, from 0; 0 for data"},
	P_VALUE("format", true, "FORMAT", "hex, dec, oct, bin, char, offset, stack, enum:NAME or default"), P_EDIT};
static const struct ops_param p_types[] = {
	{.name = "source", .type = OPS_CHOICE, .choices = "user|header|dwarf|builtin", .value = "S", .help = "only those from there"},
	P_FLAG("c", "all of them as a C header that compiles"), P_LIST, P_FILTER, P_SORT, P_COMMON};
static const struct ops_param p_type[] = {
	{.name = "name", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "NAME", .help = "a typedef, a tag or a function"},
	P_COMMON};
static const struct ops_param p_type_at[] = {P_ADDR(true, "data or a function"), P_COMMON};
static const struct ops_param p_edit[] = {
	{.name = "ops", .type = OPS_JSON, .is_required = true, .value = "FILE", .help = "a JSON document with the edits; - is stdin"},
	P_FLAG("atomic", "one refusal refuses all"), P_EDIT};
static const struct ops_param p_undo[] = {
	{.name = "steps", .type = OPS_INT, .is_positional = true, .value = "N", .help = "how many edits (1)"},
	{.name = "author", .type = OPS_STRING, .value = "A", .help = "only edits of A"},
	{.name = "rev", .type = OPS_INT, .value = "R", .help = "undo: only the edit that made revision R, which need not be the newest"},
	{.name = "note", .type = OPS_STRING, .value = "S", .help = "why, for the journal"}, {NULL}};
static const struct ops_param p_proposals[] = {
	{.name = "author", .type = OPS_STRING, .value = "A", .help = "only those of A"}, P_FLAG("all", "what was decided, too"), P_LIST, P_COMMON};
static const struct ops_param p_decide[] = {
	{.name = "id", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "ID", .help = "their numbers"},
	{.name = "author", .type = OPS_STRING, .value = "A", .help = "all of A that wait"}, P_FLAG("all", "all that wait"), {NULL}};
static const struct ops_param p_journal[] = {
	{.name = "since", .type = OPS_INT, .value = "R", .help = "only what came after revision R"}, P_LIST, P_COMMON};
static const struct ops_param p_multi[] = {
	{.name = "ops", .type = OPS_JSON, .is_required = true, .value = "FILE", .help = "a JSON document with the operations; - is stdin"},
	P_COMMON};
static const struct ops_param p_exec[] = {
	{.name = "script", .type = OPS_PATH, .is_positional = true, .value = "SCRIPT.py", .help = "a file of Python; - is stdin"},
	{.name = "args", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "ARGS", .help = "its args"},
	{.name = "code", .type = OPS_STRING, .letter = 'c', .value = "CODE", .help = "Python in place of a file"},
	{.name = "deadline", .type = OPS_STRING, .value = "S", .help = "seconds until it is ended (30)"},
	{.name = "deadline_ms", .type = OPS_INT, .value = "N", .help = "the same in milliseconds, starting the interpreter included"},
	P_FLAG("read_only", "refuse its edits"),
	{.name = "max_output", .type = OPS_INT, .value = "N", .help = "bytes of what it prints that the answer keeps (1048576)"},
	{.name = "memory_mb", .type = OPS_INT, .value = "N", .help = "megabytes of memory it may take (1024)"},
	P_FLAG("unconfined", "with everything you may do: files, network, programs; only at the command line"), {NULL}};
static const struct ops_param p_export[] = {
	{.name = "output", .type = OPS_STRING, .letter = 'o', .value = "PATH", .help = "where to; its ending says the format (stdout)"},
	{.name = "format", .type = OPS_CHOICE, .choices = "md|json|h|c|asm|html|map|list", .value = "F",
	 .help = "md (report), json (for import), h (types), c (every function), asm (listing), html (listing), map (as IDA's), list (ADDR NAME)"},
	P_FLAG("patched", "the file's bytes with what was patched, as a new file"),
	{.name = "deadline_ms", .type = OPS_INT, .value = "N", .help = "give up after N milliseconds"}, {NULL}};
static const struct ops_param p_import[] = {
	{.name = "from", .type = OPS_PATH, .is_positional = true, .is_required = true, .value = "PATH", .help = "what to read; - is stdin"},
	{.name = "format", .type = OPS_CHOICE, .choices = "json|list|map|idc|csv|xml", .value = "F", .help = "what it is (told from its text)"},
	{.name = "base", .type = OPS_ADDR, .value = "ADDR", .help = "where the other program had put the file (as scry does)"},
	P_FLAG("any_target", "also an export of another file"),
	P_FLAG("atomic", "one refusal refuses all"), P_EDIT};
static const struct ops_param p_check[] = {P_FLAG("image", "every checksum and every stored number of the analysis"),
					   P_FLAG("edits", "the journal's file, and that its tables follow from its entries"), P_COMMON};
static const struct ops_param p_analyze[] = {
	{.name = "threads", .type = OPS_INT, .value = "N", .help = "use N threads instead of all cores"},
	P_FLAG("force", "even when the store has an analysis of this file"), P_COMMON};
static const struct ops_param p_batch[] = {
	{.name = "source", .type = OPS_PATH, .is_positional = true, .is_required = true, .value = "DIR|LIST", .help = "a folder, or a list of files"},
	{.name = "op", .type = OPS_STRING, .is_required = true, .value = "OP", .help = "the operation; its own options and words stand beside these"},
	{.name = "out", .type = OPS_STRING, .is_required = true, .value = "DIR", .help = "where the answers go"},
	{.name = "jobs", .type = OPS_INT, .value = "N", .help = "so many processes at once (one for each processor)"},
	{.name = "timeout", .type = OPS_INT, .value = "S", .help = "seconds until one is killed (600)"},
	P_FLAG("strict", "exit status 1 also when something was no program or was skipped"),
	P_FLAG("retry", "try again what failed, took too long or crashed before"),
	{NULL}};
static const struct ops_param p_trace[] = {
	{.name = "cmd", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "CMD",
	 .help = "behind --: a program to run, with its words"},
	{.name = "expr", .type = OPS_STRING, .is_repeated = true, .letter = 'e', .value = "LIST",
	 .help = "these calls: names, classes (%file, trace=%network), !LIST for all others"},
	{.name = "pid", .type = OPS_STRING, .is_repeated = true, .letter = 'p', .value = "PID", .help = "processes that run already"},
	{.name = "comm", .type = OPS_STRING, .letter = 't', .value = "COMM", .help = "only processes of this name"},
	{.name = "container", .type = OPS_STRING, .value = "ID", .help = "only those of a container; the beginning of its id"},
	P_FLAG("tree", "with -p: and the children they make"),
	{.name = "output", .type = OPS_STRING, .letter = 'o', .value = "FILE", .help = "record into a trace file, which --read shows"},
	{.name = "file_limit", .type = OPS_STRING, .value = "SIZE", .help = "with -o: bytes of all its files together, as 500M (1G)"},
	{.name = "keep", .type = OPS_INT, .value = "N", .help = "with -o: so many files, the newest being FILE; else the trace ends at the limit"},
	{.name = "ring", .type = OPS_STRING, .value = "SIZE", .help = "room for what waits to be read, for each processor (16M)"},
	{.name = "read", .type = OPS_PATH, .value = "FILE", .help = "show what a trace file has"},
	{.name = "source", .type = OPS_CHOICE, .choices = "bpf|tp_btf|raw_tp|perf|ptrace", .value = "S",
	 .help = "how (bpf: the first of the next three; else ptrace)"},
	{.name = "summary", .type = OPS_FLAG, .letter = 'c', .help = "calls, errors and times by call, in place of events"},
	P_FLAG("table", "one row an event, in columns"),
	{.name = "fds", .type = OPS_FLAG, .letter = 'y', .help = "what descriptors are open on"},
	{.name = "times", .type = OPS_FLAG, .letter = 'T', .help = "how long each call took"},
	{.name = "string_max", .type = OPS_INT, .letter = 's', .value = "N", .help = "bytes of strings and buffers shown (32; JSON: 4096)"},
	P_FLAG("stacks", "who called: the user's stack with each call"),
	{.name = "stack_size", .type = OPS_STRING, .value = "SIZE",
	 .help = "bytes of the stack recorded with each call, at most 2K (256 for --json, -o, --rule; 2K for --stacks; 0: no call sites)"},
	P_FLAG("lines", "of each call site the line of C, by analysing its module; implies --stacks"),
	{.name = "rule", .type = OPS_STRING, .is_repeated = true, .value = "NAME|FILE|all",
	 .help = "findings: what a rule describes (docs/rules.md); events only with -e"},
	P_FLAG("rules", "the rules that come with scry"),
	{.name = "capture", .type = OPS_STRING, .value = "exec,write DIR", .help = "copies of the files that are executed, written"},
	{.name = "capture_dir", .type = OPS_STRING, .value = "DIR", .help = "the folder for them, where it does not stand behind --capture"},
	{.name = "capture_file", .type = OPS_INT, .value = "MIB", .help = "of a file that is copied at most, in MiB (16)"},
	{.name = "capture_total", .type = OPS_INT, .value = "MIB", .help = "of all of them (256)"},
	{.name = "until", .type = OPS_STRING, .value = "N|TIME", .help = "end after N events, or after 5s, 200ms"},
	{.name = "to", .type = OPS_STRING, .value = "FILE", .help = "the text or JSON into a file"},
	P_STREAM};
static const struct ops_param p_events[] = {
	{.name = "cursor", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "CURSOR",
	 .help = "the `next` of what it goes on with"},
	P_FLAG("stop", "end the trace, and give what is left of it"), P_STREAM};
static const struct ops_param p_probe[] = {
	{.name = "what", .type = OPS_STRING, .is_positional = true, .is_required = true, .is_repeated = true, .value = "WHAT",
	 .help = "functions ('str*' for many), addresses, FUNC:LINE, FUNC:cLINE of its C"},
	{.name = "pid", .type = OPS_STRING, .is_repeated = true, .letter = 'p', .value = "PID",
	 .help = "only these processes (all that run FILE's code)"},
	P_FLAG("tree", "and their children; with CMD, those it makes"),
	{.name = "args", .type = OPS_STRING, .letter = 'a', .value = "TYPE,...", .help = "what the arguments are; REG or REG:TYPE for registers"},
	{.name = "if", .type = OPS_STRING, .value = "COND", .help = "only hits for which it holds: 'a1 > 10 && ret < 0'"},
	{.name = "summary", .type = OPS_FLAG, .letter = 'c', .help = "counts and latencies in place of hits"},
	P_FLAG("entry", "the beginning of calls alone"),
	P_FLAG("stacks", "behind each hit who called that, too"),
	P_FLAG("lines", "of each of these the line of C, by analysing its module"),
	{.name = "string_max", .type = OPS_INT, .letter = 's', .value = "N", .help = "bytes of strings read (128)"},
	{.name = "count", .type = OPS_INT, .value = "N", .help = "end after N hits"},
	{.name = "for", .type = OPS_STRING, .value = "TIME", .help = "end after 5 (seconds), 200ms"},
	{.name = "ring_kb", .type = OPS_INT, .value = "N", .help = "room for hits that wait to be read, in KiB (4096)"},
	{.name = "attach", .type = OPS_CHOICE, .choices = "session|multi|perf", .value = "WAY", .help = "how (the best this kernel has)"},
	P_STREAM};
static const struct ops_param p_debug[] = {
	{.name = "what", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "WHAT",
	 .help = "connect://HOST:PORT[/PATH], unix-connect://SOCKET or ssh://HOST/PATH of a debug server, then the program's FILE here"},
	{.name = "break", .type = OPS_STRING, .is_repeated = true, .letter = 'b', .value = "PLACE",
	 .help = "stop there: NAME, ADDR, FUNC:LINE, FILE:LINE"},
	{.name = "execute", .type = OPS_STRING, .is_repeated = true, .letter = 'e', .value = "COMMAND",
	 .help = "do this and, after the last one, end"},
	{.name = "pid", .type = OPS_INT, .letter = 'p', .value = "PID", .help = "attach to this process, here or of the server's machine"},
	{.name = "trace", .type = OPS_STRING, .value = "LOG", .help = "step from the first stop on, and write what each step did there"},
	{.name = "timeout", .type = OPS_INT, .value = "S", .help = "give a server up that says nothing for so many seconds (10)"},
	{NULL}};
static const struct ops_param p_serve[] = {
	{.name = "file", .type = OPS_PATH, .is_positional = true, .is_repeated = true, .value = "FILE", .help = "programs to open"},
	{.name = "socket", .type = OPS_STRING, .value = "SOCKET", .help = "a path, or a bare name in $XDG_RUNTIME_DIR/scry (serve)"},
	{.name = "project", .type = OPS_PATH, .value = "P.json", .help = "the binaries of a project, by their labels"},
	P_FLAG("read_only", "clients may only read"),
	{.name = "caps", .type = OPS_STRING, .value = "LIST", 
	 .help = "what clients may do, of read,edit,run-code,run-target,trace,write-files,net (all)"},
	{.name = "max_clients", .type = OPS_INT, .value = "N", .help = "connections at the same time (4096)"},
	{.name = "listen", .type = OPS_STRING, .value = "HOST:PORT", .help = "over TCP too; needs the three below"},
	{.name = "tls_cert", .type = OPS_PATH, .value = "FILE", .help = "the certificate, PEM"},
	{.name = "tls_key", .type = OPS_PATH, .value = "FILE", .help = "its key, PEM"},
	{.name = "token_file", .type = OPS_PATH, .value = "FILE", .help = "what clients say first, 16 bytes or more, readable by its owner alone"},
	{NULL}};
static const struct ops_param p_platform[] = {
	{.name = "cmd", .type = OPS_STRING, .is_positional = true, .is_repeated = true, .value = "CMD",
	 .help = "behind --: a program that each client finds launched, as with gdbserver"},
	{.name = "socket", .type = OPS_STRING, .value = "SOCKET", .help = "a path, or a bare name in $XDG_RUNTIME_DIR/scry: for you alone"},
	P_FLAG("stdio", "one client, at stdin and stdout"),
	{.name = "listen", .type = OPS_STRING, .value = "HOST:PORT", .help = "over TCP (port 0: any); needs --allow-remote"},
	P_FLAG("allow_remote", "let everybody in who reaches the port: every user of this machine, also on localhost"),
	P_FLAG("allow_run", "clients launch, attach to and kill programs and run commands: this equals a shell"),
	{.name = "root", .type = OPS_PATH, .value = "DIR", 
	 .help = "packets about files see DIR as / and nothing else; programs that run are not confined"},
	{NULL}};
static const struct ops_param p_mcp[] = {
	{.name = "file", .type = OPS_PATH, .is_positional = true, .is_repeated = true, .value = "FILE", .help = "programs, open from the start"},
	{.name = "project", .type = OPS_PATH, .value = "P.json", .help = "the binaries of a project, by their labels"},
	{.name = "allow", .type = OPS_STRING, .value = "CAPS", .help = "read,edit,run-code,run-target,trace,write-files: some of them (read,edit)"},
	{.name = "max_bytes", .type = OPS_INT, .value = "N", .help = "bytes of an answer, when a call does not say (24576)"},
	P_FLAG("propose", "edits wait until somebody accepts them"), P_FLAG("no_store", "keep nothing on disk"), {NULL}};
static const struct ops_param p_completion[] = {
	{.name = "shell", .type = OPS_CHOICE, .is_positional = true, .is_required = true, .choices = "bash|zsh|fish", .value = "SHELL",
	 .help = "bash, zsh or fish"}, {NULL}};
static const struct ops_param p_none[] = {{NULL}};
#define P_PROJECT \
	{.name = "project", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "P.json", .help = "the project"}
#define P_FILES(text) \
	{.name = "files", .type = OPS_STRING, .is_positional = true, .is_required = true, .is_repeated = true, .value = "FILE", .help = text}
static const struct ops_param p_project_create[] = {
	P_PROJECT, P_FILES("its binaries"), {.name = "name", .type = OPS_STRING, .value = "S", .help = "what it is called"}, {NULL}};
static const struct ops_param p_project_add[] = {P_PROJECT, P_FILES("binaries that are new, moved, or have changed"), {NULL}};
static const struct ops_param p_project_remove[] = {
	P_PROJECT, {.name = "binaries", .type = OPS_STRING, .is_positional = true, .is_required = true, .is_repeated = true, .value = "BINARY",
		    .help = "labels or paths"}, {NULL}};
static const struct ops_param p_project_list[] = {
	P_PROJECT, P_FLAG("sync", "analyse and index first what is new or has changed"), {NULL}};
static const struct ops_param p_project_search[] = {
	P_PROJECT, P_VALUE("text", false, "GLOB", "a part of a name or string; * and ?"),
	{.name = "kind", .type = OPS_CHOICE, .choices = "name|export|import|function|symbol|given|string", .value = "K",
	 .help = "only names (of any kind), exports, imports, functions, other symbols, names given by people, strings"},
	{.name = "limit", .type = OPS_INT, .alias = "count", .value = "N", .help = "at most N items (JSON: 1000)"},
	{.name = "cursor", .type = OPS_STRING, .value = "C", .help = "go on where an answer's next says"},
	{.name = "deadline_ms", .type = OPS_INT, .value = "N", .help = "give up after N milliseconds"}, {NULL}};
static const struct ops_param p_project_follow[] = {
	P_PROJECT, P_VALUE("import", true, "BINARY!IMPORT", "an import of one of its binaries: bash!malloc"), {NULL}};

static const struct ops_column c_info[] = {
	{"file", "file", 'l'}, {"sha256", "sha256", 'l'}, {"size", "size", 'l'}, {"format", "format", 'l'}, {"arch", "arch", 'l'},
	{"endian", "endian", 'l'}, {"type", "type", 'l'}, {"entry", "entry", 'l'}, {"build_id", "build id", 'l'},
	{"stripped", "stripped", 'l'}, {"interp", "interpreter", 'l'}, {"needed", "needs", 'l'}, {"functions", "functions", 'l'},
	{"instructions", "instructions", 'l'}, {"strings", "strings", 'l'}, {"problems", "problems", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_segments[] = {{"addr", "ADDR", 'r'}, {"size", "SIZE", 'r'}, {"file_off", "FILE OFF", 'r'},
					       {"file_size", "FILE SIZE", 'r'}, {"perm", "PERM", 'l'}, {"name", "NAME", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_functions[] = {{"addr", "ADDR", 'r'}, {"size", "SIZE", 'r'}, {"blocks", "BLOCKS", 'r'},
						{"callers", "CALLERS", 'r'}, {"callees", "CALLEES", 'r'}, {"source", "SOURCE", 'l'},
						{"flags", "FLAGS", 'l'}, {"name", "NAME", 'l'}, {"demangled", "", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_strings[] = {{"addr", "ADDR", 'r'}, {"len", "LEN", 'r'}, {"encoding", "ENCODING", 'l'},
					      {"text", "TEXT", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_imports[] = {{"addr", "ADDR", 'r'}, {"kind", "KIND", 'l'}, {"name", "NAME", 'l'}, {"version", "VERSION", 'l'},
					      {"library", "LIBRARY", 'l'}, {"demangled", "", 'l'}, {"prototype", "PROTOTYPE", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_symbols[] = {{"addr", "ADDR", 'r'}, {"kind", "KIND", 'l'}, {"name", "NAME", 'l'},
					      {"version", "VERSION", 'l'}, {"library", "LIBRARY", 'l'}, {"demangled", "", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_bookmarks[] = {{"addr", "ADDR", 'r'}, {"set_rev", "REV", 'r'}, {"where", "WHERE", 'l'},
						{"text", "TEXT", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_problems[] = {{"severity", "SEVERITY", 'l'}, {"addr", "ADDR", 'r'}, {"what", "WHAT", 'l'},
					       {"why", "WHY", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_resolve[] = {{"query", "QUERY", 'l'}, {"addr", "ADDR", 'r'}, {"kind", "KIND", 'l'},
					      {"name", "NAME", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_hits[] = {{"addr", "ADDR", 'r'}, {"func", "IN", 'l'}, {"line", "", 'r'}, {"text", "TEXT", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_xrefs[] = {{"from", "FROM", 'r'}, {"to", "TO", 'r'}, {"kind", "KIND", 'l'}, {"func", "FUNCTION", 'l'},
					    {"text", "TEXT", 'l'}, {"binary", "", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_blocks[] = {{"id", "BLOCK", 'r'}, {"addr", "ADDR", 'r'}, {"end", "END", 'r'}, {"succ", "GOES TO", 'l'},
					     {NULL, NULL, 0}};
static const struct ops_column c_calls[] = {{"caller", "CALLER", 'r'}, {"caller_name", "", 'l'}, {"callee", "CALLEE", 'r'},
					    {"callee_name", "", 'l'}, {"count", "CALLS", 'r'}, {NULL, NULL, 0}};
static const struct ops_column c_check[] = {{"ok", "OK", 'l'}, {"what", "WHAT", 'l'}, {"why", "WHY", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_types[] = {{"name", "NAME", 'l'}, {"size", "SIZE", 'r'}, {"kind", "KIND", 'l'},
					    {"source", "SOURCE", 'l'}, {"text", "TEXT", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_type_at[] = {{"addr", "addr", 'l'}, {"name", "name", 'l'}, {"type", "type", 'l'}, {"size", "size", 'l'},
					      {"member", "member", 'l'}, {"prototype", "prototype", 'l'}, {"source", "source", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_journal[] = {
	{"rev", "REV", 'r'}, {"time", "TIME", 'l'}, {"author", "AUTHOR", 'l'}, {"step", "STEP", 'l'}, {"op", "OP", 'l'}, {"addr", "ADDR", 'r'},
	{"sub", "", 'l'}, {"undone_by", "UNDONE BY", 'r'}, {"before", "BEFORE", 'l'}, {"after", "AFTER", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_changes[] = {
	{"rev", "REV", 'r'}, {"time", "TIME", 'l'}, {"author", "AUTHOR", 'l'}, {"op", "OP", 'l'}, {"addr", "ADDR", 'r'}, {"sub", "", 'l'},
	{"edits", "EDITS", 'r'}, {"before", "BEFORE", 'l'}, {"after", "AFTER", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_export[] = {
	{"path", "path", 'l'}, {"format", "format", 'l'}, {"bytes", "bytes", 'l'}, {"names", "names", 'l'}, {"comments", "comments", 'l'},
	{"types", "types", 'l'}, {"others", "others", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_salvage[] = {{"entries", "entries kept", 'l'}, {"lost", "entries lost", 'l'},
					      {"aside", "damaged file", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_decompile[] = {{"path", "path", 'l'}, {"functions", "functions", 'l'}, {"failed", "without C", 'l'},
						{"files", "files", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_verify[] = {{"addr", "ADDR", 'r'}, {"func", "FUNCTION", 'l'}, {"status", "STATUS", 'l'}, {"level", "LEVEL", 'l'},
					     {"compiler", "COMPILER", 'l'}, {"inputs", "INPUTS", 'r'}, {"blocks_hit", "REACHED", 'r'},
					     {"blocks", "BLOCKS", 'r'}, {"stage", "STAGE", 'l'}, {"why", "WHY", 'l'},
					     {"counterexample", "COUNTEREXAMPLE", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_native[] = {{"path", "path", 'l'}, {"functions", "functions", 'l'}, {"failed", "without C", 'l'},
					     {"bytes", "bytes", 'l'}, {"text_bytes", "of code", 'l'}, {"text_relocs", "relocations in code", 'l'},
					     {"data_relocs", "relocations in data", 'l'}, {"imports", "imports", 'l'}, {"sha256", "SHA-256", 'l'},
					     {"ms", "milliseconds", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_proposals[] = {{"id", "ID", 'r'}, {"state", "STATE", 'l'}, {"author", "AUTHOR", 'l'}, {"op", "OP", 'l'},
						{"addr", "ADDR", 'r'}, {"before", "BEFORE", 'l'}, {"after", "AFTER", 'l'}, {"note", "NOTE", 'l'},
						{NULL, NULL, 0}};
static const struct ops_column c_decide[] = {{"id", "ID", 'r'}, {"status", "STATUS", 'l'}, {"op", "OP", 'l'}, {"addr", "ADDR", 'r'},
					     {"after", "AFTER", 'l'}, {"why", "WHY", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_look[] = {{"what", "WHAT", 'l'}, {"addr", "ADDR", 'r'}, {"name", "NAME", 'l'}, {"count", "COUNT", 'r'},
					   {"kind", "KIND", 'l'}, {"type", "TYPE", 'l'}, {"text", "TEXT", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_reference[] = {{"op", "OPERATION", 'l'}, {"capability", "NEEDS", 'l'}, {"help", "WHAT IT DOES", 'l'},
						{NULL, NULL, 0}};
static const struct ops_column c_doctor[] = {{"ok", "OK", 'l'}, {"what", "WHAT", 'l'}, {"why", "WHY", 'l'}, {"fix", "WHAT TO DO", 'l'},
					     {NULL, NULL, 0}};
static const struct ops_column c_analyze[] = {{"file", "file", 'l'}, {"functions", "functions", 'l'}, {"instructions", "instructions", 'l'},
					      {"strings", "strings", 'l'}, {"xrefs", "references", 'l'}, {"problems", "problems", 'l'},
					      {"image_bytes", "image bytes", 'l'}, {"made", "made now", 'l'}, {"ms", "milliseconds", 'l'},
					      {NULL, NULL, 0}};
static const struct ops_column c_version[] = {{"version", "scry", 'l'}, {"engine", "engine", 'l'}, {"image_format", "image format", 'l'},
					      {NULL, NULL, 0}};

static const struct ops_column c_project[] = {{"label", "BINARY", 'l'}, {"state", "STATE", 'l'}, {"indexed", "INDEXED", 'l'},
					      {"found", "FILE", 'l'}, {"why", "", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_find[] = {{"binary", "BINARY", 'l'}, {"addr", "ADDR", 'r'}, {"kind", "KIND", 'l'}, {"text", "TEXT", 'l'},
					   {"demangled", "", 'l'}, {NULL, NULL, 0}};
static const struct ops_column c_follow[] = {{"binary", "BINARY", 'l'}, {"addr", "ADDR", 'r'}, {"name", "NAME", 'l'}, {"version", "VERSION", 'l'},
					     {NULL, NULL, 0}};

static const struct ops_column c_cache[] = {{"bytes", "BYTES", 'r'}, {"used", "LAST USED", 'l'}, {"state", "STATE", 'l'}, {"url", "FILE", 'l'},
					    {NULL, NULL, 0}};
static const struct ops_column c_prune[] = {{"freed", "bytes freed", 'l'}, {NULL, NULL, 0}};
static const struct ops_param p_get[] = {
	{.name = "url", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "URL",
	 .help = "connect://HOST:PORT/PATH, unix-connect://SOCKET:/PATH, ssh://HOST/PATH"},
	{.name = "output", .type = OPS_STRING, .letter = 'o', .value = "FILE",
	 .help = "where to put it (the last part of PATH, here); with --libs a folder"},
	P_FLAG("libs", "and the libraries it needs, and those they need"),
	{.name = "stall", .type = OPS_INT, .value = "S", .help = "give up after S seconds without progress (15)"}, {NULL}};
static const struct ops_param p_push[] = {
	{.name = "local", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "FILE", .help = "the file to send"},
	{.name = "url", .type = OPS_STRING, .is_positional = true, .is_required = true, .value = "URL",
	 .help = "where to: connect://HOST:PORT/PATH and the like"},
	{.name = "stall", .type = OPS_INT, .value = "S", .help = "give up after S seconds without progress (15)"}, {NULL}};
static const struct ops_param p_prune[] = {
	{.name = "limit", .type = OPS_INT, .value = "BYTES", .help = "until at most so many are left (20 GiB, or $SCRY_CACHE_LIMIT)"}, {NULL}};

#define READ(n, s, p, c, f, h) {.name = n, .cap = SES_CAP_READ, .shape = s, .needs_target = true, .help = h, .params = p, .columns = c, .run = f}
#define TOOL(n, s, p, c, f, h) {.name = n, .cap = SES_CAP_READ, .shape = s, .help = h, .params = p, .columns = c, .run = f}

/* The command line runs it itself, and others have it piece by piece. */
#define WATCH(n, t, p, h, d) \
	{.name = n, .cap = SES_CAP_TRACE, .shape = OPS_OBJECT, .needs_target = t, .is_raw = true, .is_command = true, .is_served = true, \
	 .params = p, .run = ops_watch, .help = h, .details = d}
#define COMMAND(n, c, p, h, d) {.name = n, .cap = c, .is_command = true, .params = p, .run = run_nowhere, .help = h, .details = d}

#define EDIT(n, p, f, h, d) \
	{.name = n, .cap = SES_CAP_EDIT, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .help = h, .params = p, .run = f, .details = d}

static struct err *run_nowhere(struct ops_req *rq)
{
	return err_fix(err_new(ERR_UNSUPPORTED, "%s: is a command of the command line", rq->args->op->name), "scry help %s", rq->args->op->name);
}

static const struct ops_op ops_all[] = {
	READ("info", OPS_OBJECT, p_plain, c_info, ops_info, "what the file is, and how much is in it"),
	READ("segments", OPS_LIST, p_segments, c_segments, ops_segments, "what is mapped when the program runs"),
	READ("sections", OPS_LIST, p_segments, c_segments, ops_sections, "the section table"),
	READ("functions", OPS_LIST, p_list, c_functions, ops_functions, "the functions found"),
	READ("heads", OPS_LIST, p_heads, NULL, ops_heads, "the listing: code and data, line by line"),
	READ("disasm", OPS_LIST, p_disasm, NULL, ops_disasm, "the listing of one function"),
	READ("blocks", OPS_LIST, p_blocks, c_blocks, ops_blocks, "the basic blocks of a function and where each goes"),
	{.name = "decompile", .cap = SES_CAP_READ, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .params = p_decompile,
	 .columns = c_decompile, .run = ops_decompile, .help = "a function as C that compiles",
	 .details = "So far without types: what a function takes and leaves are members of the machine's state, what it computes is in variables; at "
		    "level L4 registers are variables and the C says what each instruction does. "
		    "Needs nothing but scry.h."},
	{.name = "verify", .cap = SES_CAP_RUN_TARGET, .shape = OPS_LIST, .needs_target = true, .params = p_verify, .columns = c_verify,
	 .run = ops_verify, .help = "run functions and their C on the same inputs, and compare",
	 .details = "Runs code of the target in a locked-down process; agree with --yes-run-target, once for a file. equal says that so many "
		    "inputs gave the same results, memory and calls, and which part of the function they reached: a test, no proof."},
	{.name = "call", .cap = SES_CAP_RUN_TARGET, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .params = p_call,
	 .run = ops_call_func, .help = "call a function of the target with these arguments",
	 .details = "Runs code of the target in a locked-down process; agree with --yes-run-target, once for a file. The "
		    "process has no files, network, other "
		    "processes or system calls; that does not protect from faults of the kernel or of the processor. Arguments are numbers "
		    "(-5, 0x1f), floating point numbers (1.5 or f64:1.5 a double, 1.5f or f32:1.5 a float), text (as a C string), buf:N (N zero "
		    "bytes), buf:HEX (bytes; buf:0x10 is one), out:N (N bytes of 0xaa, to be written), addr:NAME (where that lies in the "
		    "process), str:TEXT (text whatever it looks like). Where a prototype is known, what it does not take is refused. Pure functions "
		    "of libc are libc's own, allocation works, exit and abort end the call, other imports answer 0 and are counted."},
	{.name = "native_build", .cap = SES_CAP_WRITE_FILES, .shape = OPS_OBJECT, .needs_target = true, .params = p_native_build,
	 .columns = c_native, .run = ops_native_build, .help = "functions as C, compiled into one image that is run in place",
	 .details = "A shared object of the system: imported functions are its imports, calls between the functions are direct, its code needs no "
		    "relocation. What is not in it is run as the machine code it is. Needs gcc."},
	{.name = "native_run", .cap = SES_CAP_RUN_TARGET, .shape = OPS_OBJECT, .is_raw = true, .params = p_native_run, .run = ops_native_run,
	 .help = "call a function of an image with these arguments",
	 .details = "Beside the target it was built of, in a locked-down process, as call does; agree with --yes-run-target. An image that "
		    "was not built here, or whose bytes changed since, is refused."},
	READ("xrefs", OPS_LIST, p_xrefs, c_xrefs, ops_xrefs, "who refers to an address, or what it refers to"),
	{.name = "look", .cap = SES_CAP_READ, .shape = OPS_LIST, .needs_target = true, .params = p_look, .columns = c_look, .run = ops_look,
	 .help = "all that is known of one place: C, callers, callees, strings, types, comments",
	 .details = "The first item says what it is and how much there is of each thing; then come the first of each, the C in pieces, and "
		    "the rest. --max-bytes cuts it anywhere, and --cursor goes on there."},
	READ("callgraph", OPS_LIST, p_callgraph, c_calls, ops_callgraph, "who calls whom"),
	READ("strings", OPS_LIST, p_strings, c_strings, ops_strings, "the strings found"),
	READ("imports", OPS_LIST, p_list, c_imports, ops_imports, "what the program takes from libraries"),
	READ("exports", OPS_LIST, p_list, c_symbols, ops_exports, "what the program offers to others"),
	READ("symbols", OPS_LIST, p_list, c_symbols, ops_symbols, "the symbol tables"),
	READ("resolve", OPS_LIST, p_resolve, c_resolve, ops_resolve, "names to addresses"),
	{.name = "bytes", .cap = SES_CAP_READ, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .params = p_bytes,
	 .run = ops_bytes, .help = "bytes as the program sees them in memory"},
	READ("search", OPS_LIST, p_search, c_hits, ops_search, "find bytes, text, numbers, instructions or C"),
	READ("problems", OPS_LIST, p_segments, c_problems, ops_problems, "what is wrong with the file, or could not be read"),
	EDIT("rename", p_rename, ops_rename, "name an address, or many from a map",
	     "A name is refused when it is another place's, has spaces or control characters, or would read as an address."),
	EDIT("comment", p_comment, ops_comment, "comment on an address", NULL),
	EDIT("bookmark", p_bookmark, ops_bookmark, "mark an address", NULL),
	EDIT("define", p_define, ops_define, "say what is at an address: code, a function, data, a string, an array",
	     "Analysis obeys over whatever it would guess, and is done again for it. Code goes on to where control ends; the answer says of how "
	     "many instructions it is and why it stops: flow, segment, defined, undecodable, limit. What was stated before about the same "
	     "bytes gives way, and comes back with undo."),
	EDIT("undefine", p_undefine, ops_undefine, "say that nobody knows what these bytes are", NULL),
	EDIT("make_data", p_make_data, ops_make_data, "say that data of a type is at an address", NULL),
	EDIT("make_string", p_make_string, ops_make_string, "say that a string is at an address", NULL),
	EDIT("bounds", p_bounds, ops_bounds, "say how far a function reaches",
	     "Its pieces are what is stated, no more and no less; no other function has code there."),
	EDIT("flags", p_flags, ops_flags, "say what is known of a function: noreturn, returns, library, thunk", NULL),
	EDIT("jump_table", p_jump_table, ops_jump_table, "say where an indirect jump leads: its table",
	     "The table ends early where an entry leads to no code."),
	EDIT("load", p_load, ops_load, "say of what processor a file is and where it is loaded",
	     "At any time: what was stated moves with the bytes it is about. A file whose format nobody knows is opened by any command with "
	     "--processor, which states it: its bytes are then one segment from address 0 on, or from --base."),
	EDIT("patch", p_patch, ops_patch, "show other bytes than the file's",
	     "The file is never written. The listing and bytes show the patch; search and references keep to the file."),
	EDIT("unpatch", p_unpatch, ops_unpatch, "show the file's own bytes again", NULL),
	EDIT("declare", p_declare, ops_declare, "declare C types and functions",
	     "The text is what a preprocessor leaves: no #include. Either all of it is declared or, with line and column of what is wrong, "
	     "nothing. Declaring again what says the same is no error; to change a type, say which with --over. "
	     "With --header the compiler's preprocessor runs on a header, locked in; errors name the line of the file they are in. Where libclang "
	     "is installed its layout of what the header declares is compared with ours, and taken over where they differ."),
	EDIT("undeclare", p_undeclare, ops_undeclare, "take a declaration away", "Refused while others need it."),
	READ("types", OPS_LIST, p_types, c_types, ops_types, "the C types that were declared"),
	{.name = "type", .cap = SES_CAP_READ, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .params = p_type, .run = ops_type,
	 .help = "one type: size, members and where they stand, as C"},
	READ("type_at", OPS_OBJECT, p_type_at, c_type_at, ops_type_at, "the type of data, or the prototype of a function"),
	EDIT("retype", p_retype, ops_retype, "give data a C type", "A struct shows its members in the listing. The type covers the bytes it is long: "
	     "they must not hold code or reach into other typed data."),
	EDIT("set_prototype", p_set_prototype, ops_set_prototype, "give a function a C prototype", NULL),
	EDIT("format", p_format, ops_format, "choose how a number is written",
	     "Refused when the operand has no number, for offset when that is no address of the program, for stack when it is no distance from "
	     "a stack or frame pointer, for an enum when no constant has the value."),
	EDIT("edit", p_edit, ops_edit, "many edits as one transaction",
	     "The document: {\"ops\":[{\"op\":\"rename\",\"addr\":\"0x401136\",\"name\":\"parse\"}, {\"op\":\"comment\",\"addr\":\"main\","
	     "\"kind\":\"line\",\"text\":\"...\"}, {\"op\":\"bookmark\",\"addr\":A,\"text\":T}, {\"op\":\"patch\",\"addr\":A,\"bytes\":B}, "
	     "{\"op\":\"define\", \"addr\":A, \"what\":\"data:TYPE\"}, "
	     "and undefine, make_data, make_string, bounds, flags, jump_table, load with the words of their commands, "
	     "{\"op\":\"unpatch\",\"addr\":A}, {\"op\":\"retype\",\"addr\":A,\"type\":T}, {\"op\":\"set_prototype\",\"addr\":A,\"prototype\":P}, "
	     "{\"op\":\"format\",\"addr\":A,\"operand\":1,\"format\":\"dec\"}], \"atomic\":true, \"dry_run\":false, \"if_rev\":R, "
	     "\"note\":S}. An empty or null value takes the thing away. Each is answered applied, unchanged, or refused with the reason."),
	READ("proposals", OPS_LIST, p_proposals, c_proposals, ops_proposals, "edits that agents propose, and what became of them"),
	{.name = "accept", .cap = SES_CAP_EDIT, .shape = OPS_LIST, .needs_target = true, .params = p_decide, .columns = c_decide, .run = ops_accept,
	 .help = "make proposed edits, in their author's name",
	 .details = "Those of one call are one revision. One is refused when what it changes was changed since it was proposed (stale), or when "
		    "the edit would be; it waits on."},
	{.name = "refuse", .cap = SES_CAP_EDIT, .shape = OPS_LIST, .needs_target = true, .params = p_decide, .columns = c_decide, .run = ops_refuse,
	 .help = "put proposed edits away"},
	EDIT("undo", p_undo, ops_undo, "take back the newest edits",
	     "Each edit is taken back as a revision of its own, so nothing is erased. One that somebody changed since is refused."),
	EDIT("redo", p_undo, ops_redo, "make again what undo took back", "Until the next edit."),
	READ("bookmarks", OPS_LIST, p_segments, c_bookmarks, ops_bookmarks, "places somebody marked, with what they said"),
	READ("journal", OPS_LIST, p_journal, c_journal, ops_journal, "who changed what, and when"),
	READ("changes", OPS_LIST, p_journal, c_changes, ops_changes, "what is another than it was at a revision"),
	{.name = "multi", .cap = SES_CAP_READ, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .params = p_multi, .run = ops_multi,
	 .help = "several questions at once, answered at one moment",
	 .details = "The document: {\"ops\":[{\"op\":\"heads\",\"params\":{\"addr\":\"main\",\"count\":20}}, ...]}. Always answers in JSON: "
		    "{\"rev\",\"results\":[...]}, in order; what failed has {\"error\"} in its place."},
	{.name = "exec", .cap = SES_CAP_RUN_CODE, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .params = p_exec, .run = ops_exec,
	 .help = "run Python on the target, in a process that can do no harm",
	 .details = "The snippet finds db (the target as scry.open() gives it: docs/python.md), scry, and args. What it leaves in result is the "
		    "answer. It reads what you can read and writes only in a folder of its own that goes when it ends (TMPDIR); it has no "
		    "network and no other processes. Edits are made by scry in your name, as a script's. Past its deadline it is gone, "
		    "whatever it does."},
	{.name = "export", .cap = SES_CAP_WRITE_FILES, .shape = OPS_OBJECT, .needs_target = true, .is_raw = true, .params = p_export,
	 .columns = c_export, .run = ops_export, .help = "write down what was found out: report, header, C, listing, JSON, map of symbols",
	 .details = "An existing file is replaced whole or not at all, and never the target."},
	EDIT("import", p_import, ops_import, "take names and comments from elsewhere",
	     "Reads scry's own JSON, {\"ADDR\":\"NAME\"}, lines of ADDR NAME (also nm's), maps and IDC scripts of IDA, symbol tables of Ghidra "
	     "as CSV or XML. It is one edit, which undo takes back. Each entry is applied, unchanged, refused with the reason, or left out with the "
	     "reason: names that a disassembler makes up from the address, second names of one place."),
	{.name = "salvage", .cap = SES_CAP_EDIT, .shape = OPS_OBJECT, .needs_target = true, .params = p_none, .columns = c_salvage,
	 .run = ops_salvage, .help = "save what can be read of a damaged journal",
	 .details = "The damaged file is put aside, never deleted. Names, comments and the rest that could be read go on in a new one."},
	{.name = "analyze", .cap = SES_CAP_READ, .shape = OPS_OBJECT, .needs_target = true, .params = p_analyze, .columns = c_analyze,
	 .run = ops_analyze, .help = "analyse now and keep the result",
	 .details = "Every operation analyses a file it has not seen before; this one does nothing else, and shows how far it is."},
	{.name = "check", .cap = SES_CAP_READ, .shape = OPS_LIST, .needs_target = true, .params = p_check, .columns = c_check,
	 .run = ops_check, .help = "verify what the store holds about a file"},
	{.name = "project_create", .cap = SES_CAP_WRITE_FILES, .shape = OPS_LIST, .params = p_project_create, .columns = c_project,
	 .run = ops_project_create, .help = "write a project: binaries that are looked at together",
	 .details = "P.json is {\"name\":S, \"id\":HEX, \"binaries\":[{\"path\":P, \"label\":L, \"sha256\":HEX}]}, paths relative to its folder. "
	 "Only binaries and their paths are needed; with sha256 scry says when a binary is another than it was. "
	 "scry --project P.json opens the workbench on it, scry COMMAND --project P.json BINARY answers about one of its binaries."},
	TOOL("project_list", OPS_LIST, p_project_list, c_project, ops_project_list,
	     "the binaries of a project, and which moved, changed or vanished"),
	{.name = "project_add", .cap = SES_CAP_WRITE_FILES, .shape = OPS_LIST, .params = p_project_add, .columns = c_project,
	 .run = ops_project_add, .help = "put binaries into a project, or take them as they are now"},
	{.name = "project_remove", .cap = SES_CAP_WRITE_FILES, .shape = OPS_LIST, .params = p_project_remove, .columns = c_project,
	 .run = ops_project_remove, .help = "take binaries out of a project; the work on them stays in the store"},
	TOOL("project_search", OPS_LIST, p_project_search, c_find, ops_project_search, "names and strings of all binaries of a project"),
	TOOL("project_follow", OPS_LIST, p_project_follow, c_follow, ops_project_follow, "which binary of a project exports what another imports"),
	COMMAND("batch", SES_CAP_WRITE_FILES, p_batch, "one operation on many files, a process for each",
		"DIR and all below it (links to files too, links to folders not), or a list of files, one a line or ended by NULs, - is "
		"stdin. The answer of FILE is OUT/FILE.ID.json, what --json prints and the whole list; OUT/batch.jsonl has a line for each file: "
		"done, failed, timeout, crashed, no_program or skipped, with the reason. A batch that was stopped or killed goes on with the "
		"same command, and asks only what has no line yet, or whose file changed. Files with the same bytes are asked once. Prints what "
		"was not answered and a sum, with --json a line for each file and one that ends it. Exit status 1 when one failed, took too "
		"long or crashed."),
	WATCH("trace", false, p_trace, "system calls, programs, processes and signals as they happen",
		"CMD runs as you, outside of any sandbox: naming it is the agreement, and nobody but the command line can; others watch what runs "
		"already, and read it piece by piece with events. Its children and "
		"threads are traced, too. Lines are as strace writes them, on stderr beside a program; with --json an object an event on stdout "
		"(docs/tracing.md), and the program's own output goes to stderr. Processes of others need root (exit status 4). The exit "
		"status is the program's, and 125 when it could not be traced."),
	WATCH("probe", true, p_probe, "calls of functions as they happen: arguments, results, times",
		"Behind -- stands a program to start, with its words: it runs as you, outside of any sandbox. Arguments are those of the "
		"function's prototype: what was declared, debug information, the system's headers; else -a says them. Conditions are C over a1, "
		"a2, ... or the names of arguments, registers, ret, ns, pid, tid, uid, cpu, and run in the kernel (docs/probes.md). Lines go to "
		"stderr beside a program, with --json an object a hit to stdout, and the program's own output to stderr then. Needs root; the "
		"exit status is the program's, and 125 when it could not be probed."),
	{.name = "events", .cap = SES_CAP_TRACE, .shape = OPS_OBJECT, .is_raw = true, .params = p_events, .run = ops_events,
	 .help = "more of a trace or probe that a server keeps",
	 .details = "Items before the cursor are given back: the same cursor gives the same again, an older one not. One that nobody reads for a "
		    "minute ends, and so do those of a client that is gone."},
	COMMAND("get", SES_CAP_NET, p_get, "fetch a file of another machine",
		"From lldb-server, gdbserver, QEMU, scry platform or over ssh, as fast as the link: many reads are in flight. What was fetched "
		"before and is unchanged comes from the cache; what was interrupted goes on where it stopped. Length, build-id and, where the server "
		"has one, a hash are compared before anything gets its name (docs/remote.md). --json: {\"path\",\"bytes\",\"transferred\",\"cached\","
		"\"seconds\",\"server\",\"round_trips\",\"files\"}."),
	COMMAND("push", SES_CAP_NET, p_push, "send a file to another machine",
		"An existing file there is overwritten. Its length and, where the server has one, its hash are compared afterwards."),
	TOOL("cache_list", OPS_LIST, p_none, c_cache, ops_cache_list, "the files of other machines that are kept"),
	TOOL("cache_verify", OPS_LIST, p_none, c_cache, ops_cache_verify, "read all of them; what is damaged is removed, to be fetched again"),
	{.name = "cache_prune", .cap = SES_CAP_WRITE_FILES, .shape = OPS_OBJECT, .params = p_prune, .columns = c_prune, .run = ops_cache_prune,
	 .help = "remove what was used longest ago"},
	COMMAND("debug", SES_CAP_RUN_TARGET, p_debug, "stop, look at and step a program, here or at a debug server",
		"Behind -- stands a program to start, with its words: it runs as you, outside of any sandbox, once the command run says so. "
		"Servers are lldb-server, gdbserver, QEMU's and scry's own. Without -e commands are read from standard input, at a terminal with a "
		"prompt; help lists them (docs/debugging.md). The exit status is the program's when it ended."),
	COMMAND("serve", SES_CAP_NET, p_serve, "answer programs over a socket",
		"JSON-RPC, one object a line: every operation by its name, for any number of clients of this user, with events when something "
		"changed (docs/serving.md). Any command with --socket SOCKET is answered by it. It ends on SIGINT and SIGTERM."),
	COMMAND("platform", SES_CAP_NET, p_platform, "serve files and debugging to lldb, gdb and other scrys",
		"An LLDB platform and a debug server at one address (docs/remote.md): platform select remote-linux, platform connect "
		"connect://HOST:PORT or unix-connect://SOCKET, target extended-remote of gdb, scry get. Without --allow-run only files are served; "
		"over --listen they are changed only with --allow-run or --root. Each client has a process of its own; what it launched is killed "
		"when it goes, what it attached to runs on. It ends on SIGINT and SIGTERM."),
	{.name = "reference", .cap = SES_CAP_READ, .shape = OPS_LIST, .params = p_reference, .columns = c_reference, .run = ops_reference,
	 .help = "which operation does it, and what it takes", .details = "Without a WORD all operations are listed, by name and purpose alone."},
	COMMAND("mcp", SES_CAP_READ, p_mcp, "serve agents: the Model Context Protocol on stdin and stdout",
		"Eight tools: open, look, find, list, edit, run, trace, reference; resources with subscriptions. Edits are an agent's in the "
		"journal. Consent to running a target is never given here."),
	TOOL("doctor", OPS_LIST, p_none, c_doctor, ops_doctor, "what this machine has and lacks, and what to do about it"),
	TOOL("version", OPS_OBJECT, p_none, c_version, ops_version, "the version"),
	TOOL("man", OPS_TEXT, p_none, NULL, ops_man, "the manual page, as roff"),
	TOOL("completion", OPS_TEXT, p_completion, NULL, ops_completion, "the completions of a shell"),
};

const struct ops_op *ops_table(size_t *ret_cnt)
{
	*ret_cnt = ARRAY_LEN(ops_all);
	return ops_all;
}

const struct ops_op *ops_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ops_all); i++) {
		if (*ops_all[i].name == *name && !strcmp(ops_all[i].name, name))
			return &ops_all[i];
	}
	return NULL;
}

/* Optimal string alignment: insert, delete, replace, and swapping neighbours each cost one. */
static unsigned ops_distance(const char *a, const char *b)
{
	enum { MAX_LEN = 24 };
	unsigned rows[3][MAX_LEN + 1];
	size_t n = strlen(a), m = strlen(b);
	if (n > MAX_LEN || m > MAX_LEN)
		return MAX_LEN;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = up[j - 1] + (a[i - 1] != b[j - 1]);
			best = MIN(best, MIN(up[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, up2[j - 2] + 1);
			row[j] = best;
		}
	}
	return rows[n % 3][m];
}

const char *ops_nearest(const char *word)
{
	const char *best = NULL;
	unsigned best_distance = 3;
	for (size_t i = 0; i < ARRAY_LEN(ops_all); i++) {
		unsigned d = ops_distance(word, ops_all[i].name);
		bool is_prefix = strlen(word) >= 3 && !strncmp(ops_all[i].name, word, strlen(word));
		if (is_prefix)
			d = MIN(d, 1);
		if (d < best_distance && d < strlen(word)) {
			best = ops_all[i].name;
			best_distance = d;
		}
	}
	return best;
}
