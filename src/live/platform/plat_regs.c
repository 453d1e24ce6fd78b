/* SPDX-License-Identifier: Apache-2.0 */
#include "live/platform/plat_inf_int.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define FXSAVE_LEN 512

struct user_regs_struct *plat_regs(struct plat_thread *t)
{
	if (!t->is_stopped)
		return NULL;
	if (!t->has_regs && ptrace(PTRACE_GETREGS, t->tid, 0, &t->regs) == 0)
		t->has_regs = true;
	return t->has_regs ? &t->regs : NULL;
}

uint8_t *plat_xstate(struct plat_thread *t)
{
	if (!t->xstate)
		t->xstate = malloc(PLAT_XSTATE_LEN);
	if (!t->is_stopped || !t->xstate)
		return NULL;
	struct iovec area = {t->xstate, PLAT_XSTATE_LEN};
	if (!t->has_xstate && ptrace(PTRACE_GETREGSET, t->tid, NT_X86_XSTATE, &area) == 0 && area.iov_len >= FXSAVE_LEN) {
		t->has_xstate = true;
		t->xstate_len = area.iov_len;
	}
	/* Processors without XSAVE. */
	area.iov_len = FXSAVE_LEN;
	if (!t->has_xstate && ptrace(PTRACE_GETREGSET, t->tid, NT_PRFPREG, &area) == 0 && area.iov_len == FXSAVE_LEN) {
		t->has_xstate = true;
		t->xstate_len = FXSAVE_LEN;
	}
	return t->has_xstate ? t->xstate : NULL;
}

int plat_regs_flush(struct plat_thread *t)
{
	int status = 0;
	if (t->is_regs_dirty && ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs) < 0)
		status = -errno;
	struct iovec area = {t->xstate, t->xstate_len};
	if (t->is_xstate_dirty &&
	    ptrace(PTRACE_SETREGSET, t->tid, t->xstate_len > FXSAVE_LEN ? NT_X86_XSTATE : NT_PRFPREG, &area) < 0)
		status = -errno;
	t->is_regs_dirty = t->is_xstate_dirty = false;
	return status;
}

void plat_regs_forget(struct plat_thread *t)
{
	t->has_regs = t->has_xstate = t->is_regs_dirty = t->is_xstate_dirty = false;
}
