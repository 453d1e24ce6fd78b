/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/recording_vfs.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

char rec_names[REC_FILE_MAX][64];
unsigned rec_file_cnt;
struct rec_op *rec_ops;
size_t rec_cnt;

static size_t rec_cap;
static sqlite3_vfs *real;
static sqlite3_vfs shim;

struct rec_file {
	sqlite3_file base;
	unsigned id;
	sqlite3_file *below; /* in the room behind this */
};

static unsigned file_id(const char *path)
{
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	for (unsigned i = 0; i < rec_file_cnt; i++) {
		if (!strcmp(rec_names[i], name))
			return i;
	}
	assert(rec_file_cnt < REC_FILE_MAX && strlen(name) < sizeof(rec_names[0]));
	memcpy(rec_names[rec_file_cnt], name, strlen(name) + 1);
	return rec_file_cnt++;
}

static void record(enum rec_kind kind, unsigned file, uint64_t off, const void *data, size_t len)
{
	if (rec_cnt == rec_cap) {
		rec_cap = rec_cap * 2 + 256;
		rec_ops = realloc(rec_ops, rec_cap * sizeof(*rec_ops));
		assert(rec_ops);
	}
	struct rec_op *op = &rec_ops[rec_cnt++];
	*op = (struct rec_op){kind, file, off, len, NULL};
	if (data) {
		op->data = malloc(len ? len : 1);
		assert(op->data);
		memcpy(op->data, data, len);
	}
}

#define BELOW(f) (((struct rec_file *)(f))->below)
#define ID(f) (((struct rec_file *)(f))->id)

static int f_close(sqlite3_file *f) { return BELOW(f)->pMethods->xClose(BELOW(f)); }
static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 off) { return BELOW(f)->pMethods->xRead(BELOW(f), p, n, off); }
static int f_size(sqlite3_file *f, sqlite3_int64 *ret) { return BELOW(f)->pMethods->xFileSize(BELOW(f), ret); }
static int f_lock(sqlite3_file *f, int how) { return BELOW(f)->pMethods->xLock(BELOW(f), how); }
static int f_unlock(sqlite3_file *f, int how) { return BELOW(f)->pMethods->xUnlock(BELOW(f), how); }
static int f_reserved(sqlite3_file *f, int *ret) { return BELOW(f)->pMethods->xCheckReservedLock(BELOW(f), ret); }
static int f_control(sqlite3_file *f, int op, void *arg) { return BELOW(f)->pMethods->xFileControl(BELOW(f), op, arg); }
static int f_sector(sqlite3_file *f) { return BELOW(f)->pMethods->xSectorSize(BELOW(f)); }
static int f_device(sqlite3_file *f) { return BELOW(f)->pMethods->xDeviceCharacteristics(BELOW(f)); }
static int f_shm_map(sqlite3_file *f, int i, int n, int w, void volatile **ret)
{
	return BELOW(f)->pMethods->xShmMap(BELOW(f), i, n, w, ret);
}
static int f_shm_lock(sqlite3_file *f, int off, int n, int how) { return BELOW(f)->pMethods->xShmLock(BELOW(f), off, n, how); }
static void f_shm_barrier(sqlite3_file *f) { BELOW(f)->pMethods->xShmBarrier(BELOW(f)); }
static int f_shm_unmap(sqlite3_file *f, int del) { return BELOW(f)->pMethods->xShmUnmap(BELOW(f), del); }

static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 off)
{
	int rc = BELOW(f)->pMethods->xWrite(BELOW(f), p, n, off);
	if (rc == SQLITE_OK)
		record(REC_WRITE, ID(f), (uint64_t)off, p, (size_t)n);
	return rc;
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 len)
{
	int rc = BELOW(f)->pMethods->xTruncate(BELOW(f), len);
	if (rc == SQLITE_OK)
		record(REC_CUT, ID(f), (uint64_t)len, NULL, 0);
	return rc;
}

static int f_sync(sqlite3_file *f, int flags)
{
	int rc = BELOW(f)->pMethods->xSync(BELOW(f), flags);
	if (rc == SQLITE_OK)
		record(REC_SYNC, ID(f), 0, NULL, 0);
	return rc;
}

static const sqlite3_io_methods methods = {
	.iVersion = 2, .xClose = f_close, .xRead = f_read, .xWrite = f_write, .xTruncate = f_truncate, .xSync = f_sync,
	.xFileSize = f_size, .xLock = f_lock, .xUnlock = f_unlock, .xCheckReservedLock = f_reserved, .xFileControl = f_control,
	.xSectorSize = f_sector, .xDeviceCharacteristics = f_device, .xShmMap = f_shm_map, .xShmLock = f_shm_lock,
	.xShmBarrier = f_shm_barrier, .xShmUnmap = f_shm_unmap,
};

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	struct rec_file *r = (struct rec_file *)f;
	(void)v;
	r->below = (sqlite3_file *)(void *)(r + 1);
	r->base.pMethods = NULL;
	int rc = real->xOpen(real, name, r->below, flags, ret_flags);
	if (rc != SQLITE_OK)
		return rc;
	r->id = name ? file_id(name) : file_id("temporary");
	r->base.pMethods = &methods;
	return rc;
}

static int v_delete(sqlite3_vfs *v, const char *name, int sync_dir)
{
	(void)v;
	int rc = real->xDelete(real, name, sync_dir);
	if (rc == SQLITE_OK)
		record(REC_DELETE, file_id(name), sync_dir != 0, NULL, 0);
	return rc;
}

void rec_start(void)
{
	if (!real) {
		real = sqlite3_vfs_find(NULL);
		shim = *real;
		shim.szOsFile = (int)sizeof(struct rec_file) + real->szOsFile;
		shim.zName = "recording";
		shim.xOpen = v_open;
		shim.xDelete = v_delete;
	}
	sqlite3_vfs_register(&shim, 1);
}

void rec_stop(void)
{
	sqlite3_vfs_register(real, 1);
	sqlite3_vfs_unregister(&shim);
}

void rec_ack(uint64_t n)
{
	record(REC_ACK, 0, n, NULL, 0);
}

void rec_free(void)
{
	for (size_t i = 0; i < rec_cnt; i++)
		free(rec_ops[i].data);
	free(rec_ops);
	rec_ops = NULL;
	rec_cnt = rec_cap = 0;
	rec_file_cnt = 0;
}
