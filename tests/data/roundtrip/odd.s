# SPDX-License-Identifier: Apache-2.0
# Code that is odd on purpose, or broken: what is said of each stands in tests/e2e/odd.sh.
	.text
	.macro FN name
	.globl \name
	.type \name,@function
	.p2align 4
\name:
	.endm
	.macro END name
	.size \name,.-\name
	.endm
	FN overlap              # the jump lands in the immediate of the mov before it
	cmpl $5,%edi
	je 1f+1
1:	movl $0x90c3c031,%eax   # from its second byte: xor eax,eax; ret; nop
	addl %edi,%eax
	ret
	END overlap
	FN opaque               # x*(x+1) is even: the other way is rubbish
	leal 1(%rdi),%eax
	imull %edi,%eax
	testb $1,%al
	jne 1f
	leal 7(%rdi),%eax
	ret
1:	.byte 0x06,0x0e,0x16,0x1e,0xff,0xff
	END opaque
	FN middle               # into the middle of another function
	testl %edi,%edi
	je into
	movl $1,%eax
	ret
	END middle
	FN other
	movl $5,%edi
into:	leal 3(%rdi),%eax
	ret
	END other
	FN selfmod              # writes over what it executes next
	leaq 1f(%rip),%rax
	movb $9,1(%rax)
1:	movl $1,%eax
	ret
	END selfmod
	.p2align 4
	.type convention,@function
convention:             # takes r10 and r11, gives the carry flag and r9
	leaq (%r10,%r11,2),%r9
	cmpq %r10,%r11
	ret
	END convention
	FN caller
	movq %rdi,%r10
	movq %rsi,%r11
	call convention
	setc %al
	movzbl %al,%eax
	addq %r9,%rax
	ret
	END caller
	FN noframe              # no unwinding, stack as a register
	movq %rsp,%rax
	movq %rdi,%rsp
	popq %rcx
	popq %rdx
	movq %rax,%rsp
	leaq (%rcx,%rdx),%rax
	ret
	END noframe
	FN pushret              # a return that is a jump
	leaq 1f(%rip),%rax
	pushq %rax
	ret
1:	movl $77,%eax
	ret
	END pushret
	FN callpop              # a call that is none
	call 1f
1:	popq %rax
	subq $1b-callpop,%rax
	ret
	END callpop
	FN anywhere             # a jump nobody knows the aim of
	jmp *%rdi
	END anywhere
	FN table                # into a table nothing bounds, of blocks of its own
	leaq 9f(%rip),%rax
	movslq (%rax,%rdi,4),%rcx
	addq %rcx,%rax
	jmp *%rax
1:	movl $1,%eax
	ret
2:	movl $2,%eax
	ret
9:	.long 1b-9b,2b-9b
	END table
	FN loopself             # for ever
1:	jmp 1b
	END loopself
	FN cutoff               # ends in the middle of an instruction
	movl %edi,%eax
	.byte 0x48,0x81
	END cutoff
	.p2align 4
	FN many
	xorl %eax,%eax
	.set i,0
	.rept 20000
	testl $(1<<(i%31)),%edi
	je 1f
	addl $1,%eax
1:	.set i,i+1
	.endr
	ret
	END many
	# 2,000 blocks, each goes on to the next and to another one, forward and back.
	.altmacro
	.macro BLOCK n, to
.Lw\n:	decl %ecx
	je .Lend
	addl $\n,%eax
	btl $(\n % 31),%eax
	jc .Lw\to
	.endm
	FN web
	xorl %eax,%eax
	movl $10000,%ecx
	.set i,0
	.rept 2000
	BLOCK %i, %(i*797+13)%2000
	.set i,i+1
	.endr
.Lend:	ret
	END web
