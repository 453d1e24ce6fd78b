/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TUI_C_LEX_H
#define TUI_C_LEX_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Tokens of one line of C as the session prints it: comments and strings end on their line. What is no C is punctuation, byte by
 * byte, so every byte of any text is blank or in a token.
 */
enum tui_c_kind { TUI_C_KEYWORD, TUI_C_TYPE, TUI_C_NUMBER, TUI_C_ADDR, TUI_C_NAME, TUI_C_CALL, TUI_C_COMMENT, TUI_C_STRING, TUI_C_PUNCT,
		  TUI_C_DIRECTIVE };

struct tui_c_token {
	uint32_t off, len; /* bytes of the line */
	uint8_t kind;      /* enum tui_c_kind */
	uint64_t value;    /* of a number or address */
};

/* The first token at or behind byte `from`; false when there is none. An address is the number behind "image + ". */
bool tui_c_next(const char *s, uint32_t len, uint32_t from, struct tui_c_token *ret);

#endif
