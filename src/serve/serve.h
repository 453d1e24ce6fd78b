/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

/* `scry serve [options] FILE...`: the words behind "serve". Returns the exit status, once a signal ended it. */
int serve_main(int argc, char **argv);

#endif
