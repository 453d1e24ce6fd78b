/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_OPS_INT_H
#define SESSION_OPS_INT_H

#include "session/ops.h"

/* The handlers, by operation. */
struct err *ops_info(struct ops_req *rq);
struct err *ops_segments(struct ops_req *rq);
struct err *ops_sections(struct ops_req *rq);
struct err *ops_functions(struct ops_req *rq);
struct err *ops_strings(struct ops_req *rq);
struct err *ops_imports(struct ops_req *rq);
struct err *ops_exports(struct ops_req *rq);
struct err *ops_symbols(struct ops_req *rq);
struct err *ops_problems(struct ops_req *rq);
struct err *ops_bookmarks(struct ops_req *rq);
struct err *ops_resolve(struct ops_req *rq);
struct err *ops_bytes(struct ops_req *rq);
struct err *ops_search(struct ops_req *rq);
struct err *ops_xrefs(struct ops_req *rq);
struct err *ops_look(struct ops_req *rq);
struct err *ops_reference(struct ops_req *rq);
struct err *ops_heads(struct ops_req *rq);
struct err *ops_disasm(struct ops_req *rq);
struct err *ops_blocks(struct ops_req *rq);
struct err *ops_decompile(struct ops_req *rq);
struct err *ops_verify(struct ops_req *rq);
struct err *ops_call_func(struct ops_req *rq);
struct err *ops_native_build(struct ops_req *rq);
struct err *ops_native_run(struct ops_req *rq);
struct err *ops_callgraph(struct ops_req *rq);
struct err *ops_check(struct ops_req *rq);
struct err *ops_analyze(struct ops_req *rq);
struct err *ops_rename(struct ops_req *rq);
struct err *ops_comment(struct ops_req *rq);
struct err *ops_bookmark(struct ops_req *rq);
struct err *ops_patch(struct ops_req *rq);
struct err *ops_unpatch(struct ops_req *rq);
struct err *ops_edit(struct ops_req *rq);
struct err *ops_declare(struct ops_req *rq);
struct err *ops_undeclare(struct ops_req *rq);
struct err *ops_types(struct ops_req *rq);
struct err *ops_type(struct ops_req *rq);
struct err *ops_type_at(struct ops_req *rq);
struct err *ops_retype(struct ops_req *rq);
struct err *ops_set_prototype(struct ops_req *rq);
struct err *ops_format(struct ops_req *rq);
struct err *ops_define(struct ops_req *rq);
struct err *ops_undefine(struct ops_req *rq);
struct err *ops_make_data(struct ops_req *rq);
struct err *ops_make_string(struct ops_req *rq);
struct err *ops_bounds(struct ops_req *rq);
struct err *ops_flags(struct ops_req *rq);
struct err *ops_jump_table(struct ops_req *rq);
struct err *ops_load(struct ops_req *rq);
struct err *ops_proposals(struct ops_req *rq);
struct err *ops_accept(struct ops_req *rq);
struct err *ops_refuse(struct ops_req *rq);
struct err *ops_undo(struct ops_req *rq);
struct err *ops_redo(struct ops_req *rq);
struct err *ops_journal(struct ops_req *rq);
struct err *ops_changes(struct ops_req *rq);
struct err *ops_multi(struct ops_req *rq);
struct err *ops_exec(struct ops_req *rq);
struct err *ops_export(struct ops_req *rq);
struct err *ops_import(struct ops_req *rq);
struct err *ops_salvage(struct ops_req *rq);
struct err *ops_watch(struct ops_req *rq);
struct err *ops_events(struct ops_req *rq);
struct err *ops_cache_list(struct ops_req *rq);
struct err *ops_cache_verify(struct ops_req *rq);
struct err *ops_cache_prune(struct ops_req *rq);
struct err *ops_doctor(struct ops_req *rq);
struct err *ops_version(struct ops_req *rq);
struct err *ops_man(struct ops_req *rq);
struct err *ops_completion(struct ops_req *rq);
struct err *ops_project_create(struct ops_req *rq);
struct err *ops_project_list(struct ops_req *rq);
struct err *ops_project_add(struct ops_req *rq);
struct err *ops_project_remove(struct ops_req *rq);
struct err *ops_project_search(struct ops_req *rq);
struct err *ops_project_follow(struct ops_req *rq);

/* References to va from other binaries of the request's project; none without one. */
struct ses_far_xref;
struct ses_far_list;
_must_use_ struct err *ops_far_xrefs(struct ops_req *rq, uint64_t va, uint32_t limit, struct ses_far_list *ret);
const char *ops_far_label(struct ops_req *rq, const struct ses_far_xref *x);

/* Appends the declaration of the struct, union or enum that has this name, or that a typedef of this name is; false when none is. */
struct ses_typeset;
bool ops_put_type(struct ses_typeset *ts, const char *name, struct buf *out);

/* The answer's etag into rq->out, of a page of the listing only what is known before it is made. */
void ops_etag_begin(struct ops_req *rq);
/* Whether the caller's --etag still holds. */
bool ops_etag_holds(const struct ops_req *rq);
/* The etag of the page whose addresses rq->out has, into the place that was left for it. */
void ops_etag_page(struct ops_req *rq);
/* Whether somebody agreed to running code of this target; --yes-run-target of a person says so now. Error denied. */
_must_use_ struct err *ops_need_consent(struct ops_req *rq, struct ses_snap *sn);
/* The target's file, the caller's to close. Error bad_input. */
_must_use_ struct err *ops_open_target(struct ses_snap *sn, int *ret);
/* "coverage" of the item or object being written: shares of blocks and edges, null of no run. JSON only. */
struct verify_verdict;
void ops_put_coverage(struct ops_out *o, const struct verify_verdict *v);
/* The options every edit has. */
_must_use_ struct err *ops_edit_opts(struct ops_req *rq, struct ses_edit_opts *ret);
/* Nanoseconds since 1970 as "2026-11-30T14:03:11.250Z". */
void ops_time_text(uint64_t ns, char text[40]);
/* Makes these edits as one transaction, all or nothing, and answers as `edit` does. */
_must_use_ struct err *ops_run_edits(struct ops_req *rq, const struct ses_edit *edits, size_t cnt);
/* What is said beside of the declarations of a header. */
struct ops_layout { const char *name; uint64_t len, own_len; bool is_taken; }; /* as struct types_differing */
struct ops_header {
	size_t known_cnt;           /* how many more need no edit: the system's table has them */
	const char *triple;         /* that libclang laid them out for; null: it was not asked */
	const char *why;            /* it said nothing, or null */
	size_t compared_cnt;
	const struct ops_layout *layouts;
	size_t layout_cnt;
};
_must_use_ struct err *ops_run_declares(struct ops_req *rq, const struct ses_edit *edits, size_t cnt, const struct ops_header *h);
struct ops_doc;
/* A directive of an edit document: its edit, or why it is refused; `*ret_is_ours` is false for an op of another kind. */
_must_use_ struct err *ops_define_doc(struct ops_req *rq, const struct ops_doc *o, const char *op, struct ses_edit *e,
				      bool *ret_is_ours, const char **ret_why);
/* The page parameters of a list: limit, offset or cursor, filter, sort. Error stale for a cursor of another revision. */
_must_use_ struct err *ops_page(struct ops_req *rq, struct ses_page *ret);
/* Ends a list of which `shown` items were written from page->offset on. */
void ops_end_page(struct ops_req *rq, const struct ses_page *page, uint32_t shown, uint64_t total);
/* The address parameter with that name; `otherwise` when it is not given. */
_must_use_ struct err *ops_addr(struct ops_req *rq, const char *name, uint64_t otherwise, uint64_t *ret);
/* "REV.A.B" with the numbers in hex, as next; and back. */
void ops_set_next(struct ops_req *rq, uint64_t a, uint64_t b);
_must_use_ struct err *ops_get_cursor(struct ops_req *rq, uint64_t *ret_a, uint64_t *ret_b);

#endif
