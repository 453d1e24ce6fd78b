/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_TUI_SCREEN_H
#define LIB_TUI_SCREEN_H

#include "lib/fake_session.h"

#include "base/buf.h"
#include "tui/tui_int.h"

/* The workbench over a made-up session: keys in, the page as text out. One at a time. */
extern struct tui tui;
extern struct ses *ses;

void open_tui(uint32_t func_cnt, int w, int h);
void close_tui(void);
/* "j Enter Ctrl+P": keys as they are written everywhere; "'text" types letters. Draws after each. */
void keys(const char *list);
/* The page, line by line, and where the cursor is; ends with a NUL. */
void page_text(struct buf *out);
bool page_has(const char *text);

#endif
