#include "textflag.h"

// func clone3(args *cloneArgs, size uintptr) (pid uintptr, errno syscall.Errno)
//
// Parent and child share the stack. The child returns first and reuses the
// place of our return address, so both keep it in a register across the call.
TEXT ·clone3(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ	args+0(FP), DI
	MOVQ	size+8(FP), SI
	MOVL	$435, AX
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
