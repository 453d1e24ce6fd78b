/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

/*
 * Code mode: the operation `exec` runs Python in a process that is forked from a warm interpreter, in which the target is mapped. What it
 * asks is answered there, from the same image; edits and whatever else is not reading go through a pipe to this process, which
 * decides what the snippet may do. A program that offers the operation calls this once, before anything runs.
 */
void exec_register(void);

#endif
