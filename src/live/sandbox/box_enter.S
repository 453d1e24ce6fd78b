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
	/* What the ABI lets a callee change is the same after every import, whoever called. */
	xor %ecx, %ecx
	xor %edx, %edx
	xor %esi, %esi
	xor %edi, %edi
	xor %r8d, %r8d
	xor %r9d, %r9d
	xor %r10d, %r10d
	xor %r11d, %r11d
	pxor %xmm0, %xmm0
	pxor %xmm1, %xmm1
	pxor %xmm2, %xmm2
	pxor %xmm3, %xmm3
	pxor %xmm4, %xmm4
	pxor %xmm5, %xmm5
	pxor %xmm6, %xmm6
	pxor %xmm7, %xmm7
	pxor %xmm8, %xmm8
	pxor %xmm9, %xmm9
	pxor %xmm10, %xmm10
	pxor %xmm11, %xmm11
	pxor %xmm12, %xmm12
	pxor %xmm13, %xmm13
	pxor %xmm14, %xmm14
	pxor %xmm15, %xmm15
	mov 48(%rsp), %rsp
	ret
	.size box_import_entry, . - box_import_entry

	.bss
	.balign 8
box_enter_regs:
	.zero 8
	.balign 16
	.zero 32768
import_stack_end:
	.section .note.GNU-stack, "", @progbits
