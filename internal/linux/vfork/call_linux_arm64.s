#include "textflag.h"

// func Call(number, a1, a2, a3 uintptr) (pid uintptr, errno syscall.Errno)
//
// Parent and child share the stack. The return address is in a register, which
// each has for itself.
TEXT ·Call(SB),NOSPLIT|NOFRAME,$0-48
	MOVD	number+0(FP), R8
	MOVD	a1+8(FP), R0
	MOVD	a2+16(FP), R1
	MOVD	a3+24(FP), R2
	MOVD	$0, R3
	MOVD	$0, R4
	SVC
	CMN	$4095, R0
	BCC	ok
	NEG	R0, R0
	MOVD	ZR, pid+32(FP)
	MOVD	R0, errno+40(FP)
	RET
ok:
	MOVD	R0, pid+32(FP)
	MOVD	ZR, errno+40(FP)
	RET
