/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FINDING_H
#define BASE_FINDING_H

#include "base/arena.h"
#include "base/vec.h"

/*
 * Damaged but usable input: a reader carries on and appends a finding, which becomes an entry of the
 * `problems` operation. The list is bounded: past FINDING_MAX only `dropped_cnt` grows, and the
 * operation says how many are not shown.
 */
enum finding_severity { FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

#define FINDING_MAX 1000

struct finding {
	enum finding_severity severity;
	bool has_va;
	uint64_t va;       /* virtual address it concerns, when has_va */
	uint64_t file_off; /* bytes from the start of the file, UINT64_MAX when none */
	const char *what;  /* the thing: "section headers", "relocation table at 0x3c0"; arena */
	const char *why;   /* what is wrong with it; arena */
};

struct findings {
	VEC(struct finding) list;
	uint64_t dropped_cnt;
	struct arena arena; /* owns the texts */
};

void findings_fini(struct findings *f);

/* Appends a finding about a file offset (UINT64_MAX: none). `what` is copied. */
void finding_add(struct findings *f, enum finding_severity severity, uint64_t file_off,
		 const char *what, const char *why_fmt, ...) _printf_(5, 6);

/* The same about a virtual address. */
void finding_add_va(struct findings *f, enum finding_severity severity, uint64_t va,
		    const char *what, const char *why_fmt, ...) _printf_(5, 6);

const char *finding_severity_name(enum finding_severity severity);

#endif
