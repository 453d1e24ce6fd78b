/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_LIB_RECORDING_VFS_H
#define TESTS_LIB_RECORDING_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A shim below SQLite that lets everything through to the system's own and writes down what would reach a disk: writes, cuts, syncs
 * and deletions of files, in order. Shared memory is no file here: it does not survive a power cut.
 */
enum rec_kind { REC_WRITE, REC_CUT, REC_SYNC, REC_DELETE, REC_ACK };

struct rec_op {
	enum rec_kind kind;
	unsigned file;   /* index into rec_names */
	uint64_t off;    /* of a cut: the new length; of a deletion: the folder was synced; of an acknowledgement: its number */
	size_t len;
	uint8_t *data;
};

#define REC_FILE_MAX 8
extern char rec_names[REC_FILE_MAX][64]; /* last parts of the paths */
extern unsigned rec_file_cnt;
extern struct rec_op *rec_ops;
extern size_t rec_cnt;

/* Makes the shim SQLite's default, or the system's own again. */
void rec_start(void);
void rec_stop(void);
void rec_ack(uint64_t n);
void rec_free(void);

#endif
