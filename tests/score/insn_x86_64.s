# SPDX-License-Identifier: Apache-2.0
# Instructions whose text the tests hold to what objdump makes of them: odd prefixes as bytes, then one or
# two of every family.
.intel_syntax noprefix
.byte 0x66,0x66,0x48,0xe8,0,0,0,0
.byte 0x66,0x48,0xe8,0,0,0,0
.byte 0x66,0xe8,0,0,0,0
.byte 0x66,0xe9,0,0,0,0
.byte 0x66,0x48,0x8d,0x3d,0,0,0,0
.byte 0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0
.byte 0x40,0x55
.byte 0x48,0x55
.byte 0x48,0xc3
.byte 0x48,0xff,0xe0
.byte 0xf3,0xc3
.byte 0xf2,0xc3
.byte 0x48,0x90
.byte 0x41,0x90
.byte 0x66,0x50
.byte 0x2e,0x75,0
.byte 0x3e,0x75,0
.byte 0x3e,0xff,0xe0
.byte 0xf2,0xe8,0,0,0,0
.byte 0x65,0x48,0x8b,0x04,0x25,0x28,0,0,0
.byte 0x64,0x48,0x8b,0x04,0x25,0xf8,0xff,0xff,0xff
.byte 0x36,0x8b,0x00
.byte 0x67,0x8b,0x00
.byte 0x67,0x8b,0x04,0x25,0,0,0,0x80
.byte 0x67,0x8b,0x05,0,0,0,0x80
.byte 0x67,0xe8,0,0,0,0
.byte 0x67,0xe3,0
.byte 0x8d,0xb4,0x26,0,0,0,0
.byte 0x8b,0x44,0x20,0x00
.byte 0xf3,0x0f,0x58,0xc0
.byte 0xf3,0x66,0x0f,0x58,0xc0
.byte 0xf2,0xf3,0x0f,0x58,0xc0
.byte 0x9b,0xdf,0xe0
.byte 0x9b,0xd8,0xc1
.byte 0xcf
.byte 0x48,0xcf
.byte 0x66,0xcf
.byte 0x9c,0x9d,0x66,0x9c,0x66,0x9d
.byte 0xf1
.byte 0xc8,1,0,2
.byte 0xca,1,0,0xcb,0x48,0xcb
.byte 0xcd,3
.byte 0x0f,0x07,0x48,0x0f,0x07
.byte 0x0f,0x34,0x0f,0x35,0x48,0x0f,0x35
vaddps zmm0{k1}{z},zmm1,dword ptr [rax]{1to16}
vaddps zmm0,zmm1,zmm2,{rn-sae}
vcmpps k1{k2},zmm1,zmm2,{sae},5
vpgatherdd zmm0{k1},[rax+zmm1*4]
vpgatherqd ymm0{k1},[rax+zmm1*4]
vgatherdpd zmm0{k1},[rax+ymm1*4]
vpgatherdd ymm0,[rax+ymm1*4],ymm2
vcvtsi2sd xmm0,xmm1,rax
vmovdqu64 [rax+0x40]{k1},zmm1
vcvtpd2dq xmm0,[rax]{1to2}
vpcmpub k1,zmm0,zmm1,2
vfpclassps k1,zmm0,3
vpternlogd zmm0,zmm1,zmm2,0x96
bndmov bnd0,[rax]
xsave [rax]
fxsave64 [rax]
lgdt [rax]
invlpg [rax]
clflush [rax]
prefetchw [rax]
prefetcht0 [rax]
call fword ptr [rax]
jmp fword ptr [rax]
rex.w call fword ptr [rax]
lss eax,[rax]
cmpxchg16b [rax]
cmpxchg8b [rax]
movbe eax,[rax]
crc32 eax,byte ptr [rax]
crc32 rax,rbx
fld tbyte ptr [rax]
fnstenv [rax]
fild qword ptr [rax]
fnsave [rax]
fbld [rax]
sldt [rax]
sldt rax
smsw eax
str rax
mov eax,ds
mov [rax],ds
mov ds,eax
lar eax,[rax]
lsl rax,[rax]
mov rax,cr0
mov rax,dr7
ud1 eax,[rax]
ud0 eax,[rax]
sysenter
monitor
mwait
xlat
1:
loop 1b
vzeroupper
vpclmulqdq xmm0,xmm1,xmm2,0x11
pclmulqdq xmm0,xmm1,1
cmpltsd xmm0,xmm1
cmpps xmm0,xmm1,9
vcmpps xmm0,xmm1,xmm2,0x1f
vcmpps xmm0,xmm1,xmm2,0x20
blendvps xmm0,xmm1,xmm0
pblendvb xmm0,[rax],xmm0
sha256rnds2 xmm0,xmm1,xmm0
extractps eax,xmm0,1
pextrb eax,xmm0,1
pextrb [rax],xmm0,1
pinsrb xmm0,[rax],1
movq xmm0,rax
movd xmm0,eax
movq xmm0,[rax]
maskmovdqu xmm0,xmm1
movmskps eax,xmm0
in al,dx
in eax,0x10
out dx,eax
insb
outsd
lodsq
cmpsb
shl eax,1
shl eax,1
sar dword ptr [rax],cl
shld eax,ebx,cl
imul eax,ebx,-3
push -1
push 0x12345678
pushw -1
ret 8
add al,-1
add ax,-2
xacquire lock add [rax],eax
xrelease mov [rax],eax
vmovups zmm0,[rip+0x1234]
tdpbssd tmm0,tmm1,tmm2
ldtilecfg [rax]
tileloadd tmm0,[rax+rbx]
enqcmd rax,[rbx]
movdir64b rax,[rbx]
ptwrite eax
rdpid rax
kmovq k1,rax
kortestw k0,k1
vextractf128 [rax],ymm0,1
vbroadcastss ymm0,[rax]
vpbroadcastb zmm0,[rax]
vmovss xmm0,[rax]
vmovss xmm0,xmm1,xmm2
vinsertf32x4 zmm0,zmm1,[rax],1
vcvtdq2pd ymm0,[rax]
vcvtps2ph [rax],ymm0,3
cvtsi2sd xmm0,dword ptr [rax]
cvtsi2sd xmm0,rax
cvtpi2ps xmm0,mm0
vldmxcsr [rax]
stmxcsr [rax]
rdrand eax
fcomi st,st(1)
fadd st,st(1)
fadd st(1),st
fxch st(2)
fstp st(1)
fld1
fucompp
ffree st(1)
vpermil2ps xmm0,xmm1,xmm2,xmm3,1
vprotd xmm0,xmm1,3
vpcomub xmm0,xmm1,xmm2,1
pfadd mm0,mm1
swapgs
vmcall
vmptrld [rax]
vmread rax,rbx
invept rax,[rbx]
rdsspq rax
wrssq [rax],rbx
rstorssp [rax]
clrssbsy [rax]
nop word ptr [rax]
endbr64
endbr32
xabort 3
xbegin .
vpscatterdd [rax+zmm1*4]{k1},zmm2
vgf2p8affineqb xmm0,xmm1,xmm2,3
vaddph zmm0,zmm1,word ptr [rax]{1to32}
vdpbf16ps zmm0,zmm1,zmm2
vcvtpd2dq xmm0,[rax]{1to2}
vcvtpd2dq xmm0,[rax]{1to4}
vcvtpd2dq ymm0,[rax]{1to8}
vcvtpd2ps xmm0,[rax]{1to2}
vcvtqq2ps xmm0,[rax]{1to4}
vfpclassps k1,[rax]{1to4},3
vfpclasspd k1,[rax]{1to8},3
vcvttpd2udq xmm0,[rax]{1to4}
vcvtps2pd zmm0,[rax]{1to8}
vcvtpd2dq xmm0,xmmword ptr [rax]
vcvtpd2dq xmm0,ymmword ptr [rax]
vpaddd xmm0,xmm1,[rax]{1to4}
vcvtph2dq zmm0,[rax]{1to16}
vcvtpd2ph xmm0,[rax]{1to8}
vcvtdq2ph xmm0,[rax]{1to4}
