/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets are those of struct box_regs. */
	.text
	.globl box_enter
	.hidden box_enter
	.type box_enter, @function
box_enter:
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rdi, box_enter_regs(%rip)
	mov %rsp, 72(%rdi)
	movups 80(%rdi), %xmm0
	movups 96(%rdi), %xmm1
	movups 112(%rdi), %xmm2
	movups 128(%rdi), %xmm3
	movups 144(%rdi), %xmm4
	movups 160(%rdi), %xmm5
	movups 176(%rdi), %xmm6
	movups 192(%rdi), %xmm7
	mov 56(%rdi), %rsp
	mov 64(%rdi), %r11
	mov 48(%rdi), %rax
	mov 8(%rdi), %rsi
	mov 16(%rdi), %rdx
	mov 24(%rdi), %rcx
	mov 32(%rdi), %r8
	mov 40(%rdi), %r9
	mov 0(%rdi), %rdi
	/* What the function should not see: the harness's own values. */
	xor %ebx, %ebx
	xor %ebp, %ebp
	xor %r10d, %r10d
	xor %r12d, %r12d
	xor %r13d, %r13d
	xor %r14d, %r14d
	xor %r15d, %r15d
	fninit
	cld
	call *%r11
	.globl box_enter_back
	.hidden box_enter_back
box_enter_back:
	mov box_enter_regs(%rip), %rdi
	mov 72(%rdi), %rsp
	mov %rax, 48(%rdi)
	mov %rdx, 208(%rdi)
	movups %xmm0, 80(%rdi)
	movups %xmm1, 96(%rdi)
	/* No flag the function may have set (direction, alignment checks) is for the harness. */
	pushq $0x2
	popfq
	/* A value on the x87 stack: its top is no longer 0. */
	fnstsw %ax
	mov %ax, 240(%rdi)
	shr $11, %eax
	and $7, %eax
	mov %rax, 232(%rdi)
	jz 1f
	fstpt 216(%rdi)
1:	fninit
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret
	.size box_enter, . - box_enter

/* rdi(rsi) on the stack at rdx. */
	.globl box_on_stack
	.hidden box_on_stack
	.type box_on_stack, @function
box_on_stack:
	push %rbp
	mov %rsp, %rbp
	mov %rdx, %rsp
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	mov %rbp, %rsp
	pop %rbp
	ret
	.size box_on_stack, . - box_on_stack

/* What the ABI lets a callee change is the same after every import, whoever called. */
	.macro clear_ints
	xor %ecx, %ecx
	xor %edx, %edx
	xor %esi, %esi
	xor %edi, %edi
	xor %r8d, %r8d
	xor %r9d, %r9d
	xor %r10d, %r10d
	xor %r11d, %r11d
	.endm
	.macro clear_vecs
	.irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	pxor %xmm\n, %xmm\n
	.endr
	.endm

/* The import's number is in r11. Arguments go to the model as an array; what it gives goes into rax and xmm0. The model has a stack
 * of its own: what it leaves below the target's stack pointer would be content of variables nobody set. */
	.globl box_import_entry
	.hidden box_import_entry
	.type box_import_entry, @function
box_import_entry:
	mov %rsp, %r10
	lea import_stack_end - 192(%rip), %rsp
	mov %r10, 48(%rsp)
	mov %rdi, 0(%rsp)
	mov %rsi, 8(%rsp)
	mov %rdx, 16(%rsp)
	mov %rcx, 24(%rsp)
	mov %r8, 32(%rsp)
	mov %r9, 40(%rsp)
	movups %xmm0, 64(%rsp)
	movups %xmm1, 80(%rsp)
	movups %xmm2, 96(%rsp)
	movups %xmm3, 112(%rsp)
	movups %xmm4, 128(%rsp)
	movups %xmm5, 144(%rsp)
	movups %xmm6, 160(%rsp)
	movups %xmm7, 176(%rsp)
	mov %r11d, %edi
	mov %rsp, %rsi
	cld
	call box_import_call
	clear_ints
	clear_vecs
	pxor %xmm0, %xmm0
	mov 48(%rsp), %rsp
	ret
	.size box_import_entry, . - box_import_entry

/* The model's address is in r11, arguments are where they are. It has the stack of imports, too, and leaves as little. */
	.macro model name, is_vec
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	mov %rsp, %r10
	lea import_stack_end - 16(%rip), %rsp
	mov %r10, 0(%rsp)
	cld
	call *%r11
	mov 0(%rsp), %rsp
	clear_ints
	clear_vecs
	.if \is_vec
	xor %eax, %eax
	.else
	pxor %xmm0, %xmm0
	.endif
	ret
	.size \name, . - \name
	.endm
	model box_model_entry, 0
	model box_model_entry_vec, 1

/* One that calls the target stays on its stack. */
	.globl box_model_entry_back
	.hidden box_model_entry_back
	.type box_model_entry_back, @function
box_model_entry_back:
	sub $8, %rsp
	cld
	call *%r11
	add $8, %rsp
	clear_ints
	clear_vecs
	pxor %xmm0, %xmm0
	ret
	.size box_model_entry_back, . - box_model_entry_back

	.bss
	.balign 8
box_enter_regs:
	.zero 8
	.balign 16
	.zero 32768
import_stack_end:
	.section .note.GNU-stack, "", @progbits
