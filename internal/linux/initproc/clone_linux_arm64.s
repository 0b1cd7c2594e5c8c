#include "textflag.h"

// func clone3(args *cloneArgs, size uintptr) (pid uintptr, errno syscall.Errno)
//
// Parent and child share the stack. The return address is in a register, which
// each has for itself.
TEXT ·clone3(SB),NOSPLIT|NOFRAME,$0-32
	MOVD	args+0(FP), R0
	MOVD	size+8(FP), R1
	MOVD	$435, R8
	SVC
	CMN	$4095, R0
	BCC	ok
	NEG	R0, R0
	MOVD	ZR, pid+16(FP)
	MOVD	R0, errno+24(FP)
	RET
ok:
	MOVD	R0, pid+16(FP)
	MOVD	ZR, errno+24(FP)
	RET
