#include "textflag.h"

// func vfork(flags uintptr, handle *int32) (pid uintptr, errno syscall.Errno)
//
// Parent and child share the stack. The child returns first and reuses the
// place of our return address, so both keep it in a register across the call.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ	flags+0(FP), DI
	XORL	SI, SI
	MOVQ	handle+8(FP), DX
	XORL	R10, R10
	XORL	R8, R8
	MOVL	$56, AX // clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	NEGQ	AX
	MOVQ	$0, pid+16(FP)
	MOVQ	AX, errno+24(FP)
	RET
ok:
	MOVQ	AX, pid+16(FP)
	MOVQ	$0, errno+24(FP)
	RET
