/* SPDX-License-Identifier: Apache-2.0 */
	.section .rodata
	.globl ses_scry_h, ses_scry_h_end
	.hidden ses_scry_h, ses_scry_h_end
ses_scry_h:
	.incbin SCRY_H
ses_scry_h_end:
	.section .note.GNU-stack, "", %progbits
