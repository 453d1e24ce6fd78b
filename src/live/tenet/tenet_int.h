/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TENET_INT_H
#define LIVE_TENET_INT_H

#include "live/tenet/tenet.h"

#include "base/file.h"
#include "base/map.h"
#include "base/vec.h"

#include <pthread.h>

/* Private to this folder: the text's tokens, the index made of it once, and the stretches of it that were read last. */
enum { TENET_BLOCK = 1024, TENET_GRAIN = 64, TENET_KEPT = 16 };

/* One token of the text, or the end of a line. */
enum tenet_what { TENET_LINE, TENET_REG, TENET_MEM, TENET_ODD };
struct tenet_token {
	uint8_t what;           /* enum tenet_what */
	uint8_t kinds;          /* of TENET_MEM */
	uint64_t key;           /* of TENET_REG: its name in lower case, first letter lowest */
	uint64_t value;         /* of TENET_REG; of TENET_MEM the address */
	const char *hex;        /* of TENET_MEM: its bytes, `len` of them */
	uint32_t len;
};
struct tenet_scan { const char *p, *end; bool is_done; };
/* The next token; false at the end of the text. Lines end with TENET_LINE, the last one too. */
bool tenet_scan_next(struct tenet_scan *s, struct tenet_token *ret);
/* Byte i of a run of hex digits that the scanner accepted. */
uint8_t tenet_hex_byte(const char *hex, size_t i);

struct tenet_names {
	unsigned cnt;
	uint64_t keys[TENET_REG_MAX];
	char text[TENET_REG_MAX][TENET_NAME_MAX + 1];
	uint8_t slots[256];     /* number + 1, by hash */
};
/* The number of the register, a new one when it has none; -1: there are too many. */
int tenet_names_know(struct tenet_names *n, uint64_t key);
int tenet_names_find(const struct tenet_names *n, uint64_t key);

/* In which blocks something occurs: entries [first[id], first[id + 1]) of the lists, blocks ascending. */
struct tenet_posts {
	struct map ids;
	uint32_t *first;
	uint32_t *block;
	uint64_t *touched, *written; /* of memory: bit i is byte i of the grain; else null */
	size_t id_cnt;
};

struct tenet_block_head {
	uint64_t text_off, regs_at;  /* regs_at: of the registers before its first line, in `frames` */
	uint64_t seen, written;      /* registers: known before it, stated in it */
};

/* A block as read: what its lines state, in order. */
struct tenet_stated { uint16_t step; uint8_t reg; uint64_t value; };
struct tenet_touch { uint16_t step; uint8_t kinds; uint32_t len; uint64_t va; const char *hex; };
struct tenet_read {
	uint32_t block;
	uint64_t used;               /* clock of the last use; 0: empty */
	uint32_t step_cnt;
	uint64_t pc[TENET_BLOCK];
	VEC(struct tenet_stated) stated;
	VEC(struct tenet_touch) touches;
};

struct tenet {
	struct file *file;           /* null: the text is borrowed */
	const char *text;
	size_t text_len;
	uint64_t step_cnt, odd_cnt, odd_line;
	struct tenet_names names;
	int pc_reg, sp_reg;
	VEC(struct tenet_block_head) blocks;
	VEC(uint64_t) frames;        /* registers before each block, those that are seen */
	struct tenet_posts code, mem;
	uint64_t *code_at;           /* the address of each id of `code` */
	pthread_mutex_t lock;        /* of what follows */
	struct tenet_read kept[TENET_KEPT];
	uint64_t clock;
};

_must_use_ struct err *tenet_index(struct tenet *t, const struct tenet_opts *opts);
void tenet_posts_fini(struct tenet_posts *p);

#endif
