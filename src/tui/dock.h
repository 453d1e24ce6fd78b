/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_DOCK_H
#define TUI_DOCK_H

#include "session/ses_debug.h"
#include "session/ses_tenet.h"
#include "tui/tui_int.h"

#include <pthread.h>

/* What dock.c keeps and dock_draw.c shows: a program that is debugged, or the log of one that ran. */
enum { DOCK_TRAIL = 24, DOCK_WORDS = 8, DOCK_SAID = 4000, DOCK_BREAKS = 1024 };

/* How a target that stands still looks, made by the job that let it run. */
struct dock_look {
	struct arena arena;
	struct buf state;
	bool has_va;
	uint64_t va;
	struct ses_debug_reg *regs;
	uint32_t reg_cnt;
	struct ses_debug_word *words;
	uint32_t word_cnt;
	struct ses_debug_frame *frames;
	uint32_t frame_cnt;
};

struct tui_dock {
	/* A log. */
	struct ses_tenet *trace;
	uint64_t step;
	uint64_t trail[2 * DOCK_TRAIL + 1]; /* addresses around the step */
	struct tui_job *loading;
	/* A debugger. While a job has it nobody else may touch it, but to interrupt. */
	struct ses_debug *debug;
	struct dock_look *look;             /* null: it never stood still */
	struct tui_job *running;
	struct ses_debug *interruptible;    /* of that job, once it is open */
	VEC(uint64_t) breaks;               /* as they are to be, ascending in no order */
	atomic_bool gives_up;
	pthread_mutex_t lock;               /* of what the target prints */
	char said[DOCK_SAID];
	size_t said_len;
};

#endif
