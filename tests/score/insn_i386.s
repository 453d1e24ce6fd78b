# SPDX-License-Identifier: Apache-2.0
# The same for i386.
.intel_syntax noprefix
push ebp
mov ebp,esp
pusha
popa
sub esp,0x18
mov eax,ds:0x804c000
mov ds:0x804c000,eax
mov ecx,[0x804c000]
mov eax,gs:0x14
mov eax,es:[ebx]
mov eax,[ebx+ecx*4+0x10]
mov eax,[ecx*4+0x804c000]
lea esi,[esi+eiz*1+0]
lea esi,[esi+0]
xchg ax,ax
call .+5
pop ebx
add ebx,0x1000
jmp [ebx+eax*4]
jmp ds:0x804c000
call 0x8:0x1234
inc eax
dec esi
inc word ptr [eax]
push 0x804c000
push -1
push word ptr [eax]
pushw 5
daa
aam
aad 8
into
bound eax,[ebx]
les eax,[ebx]
arpl ax,bx
movzx eax,byte ptr [ecx]
imul eax,ebx,-3
shld eax,ebx,3
fld tbyte ptr [eax]
fstp st(1)
movaps xmm0,[eax]
movd mm0,eax
paddb mm0,mm1
vaddps ymm0,ymm1,[eax]
vaddps zmm0{k1},zmm1,[eax+0x40]
iret
retf
ret 8
leave
enter 8,0
rep movsd
repz cmpsb
lock cmpxchg [ecx],edx
cmpxchg8b [ecx]
jecxz .
loop .
sysenter
int 0x80
int3
hlt
in al,dx
out 0x10,eax
.byte 0x67,0x8b,0x40,0x10
.byte 0x67,0x8b,0x06,0x34,0x12
.byte 0x66,0xe9,0x10,0x00
.byte 0x2e,0x75,0x10
.byte 0x3e,0xff,0xe0
ud2
