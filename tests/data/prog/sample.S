/* SPDX-License-Identifier: Apache-2.0 */
	.intel_syntax noprefix
	.text
	.globl _start
	.type _start, @function
_start:
	endbr64
	xor	ebp, ebp
	lea	rsi, [rip + message]
	mov	edx, 13
	mov	edi, 1
	call	emit
	mov	edi, 0
	jmp	finish
	.size _start, . - _start

	.balign 16
	.type emit, @function
emit:
	push	rbx
	mov	ebx, 3
.Lagain:
	mov	eax, 1
	syscall
	dec	ebx
	jnz	.Lagain
	pop	rbx
	ret
	.size emit, . - emit

	.balign 32
	.type finish, @function
finish:
	mov	eax, 60
	syscall
	ud2
	.size finish, . - finish

	.section .rodata
message:
	.asciz "golden asm\n\t\""
	.data
	.balign 8
	.globl pointers
	.type pointers, @object
pointers:
	.quad message
	.quad emit
	.quad 0x1122334455667788
	.size pointers, . - pointers
	.bss
	.globl room
	.type room, @object
room:
	.zero 4096
	.size room, . - room
	.section .note.GNU-stack, "", @progbits
