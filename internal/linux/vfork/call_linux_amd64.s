#include "textflag.h"

// func Call(number, a1, a2, a3 uintptr) (pid uintptr, errno syscall.Errno)
//
// Parent and child share the stack. The child returns first and reuses the
// place of our return address, so both keep it in a register across the call.
TEXT ·Call(SB),NOSPLIT|NOFRAME,$0-48
	MOVQ	number+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	XORL	R10, R10
	XORL	R8, R8
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	NEGQ	AX
	MOVQ	$0, pid+32(FP)
	MOVQ	AX, errno+40(FP)
	RET
ok:
	MOVQ	AX, pid+32(FP)
	MOVQ	$0, errno+40(FP)
	RET
