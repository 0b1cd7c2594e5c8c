#include "textflag.h"

// func gate32(number uint32) int32
TEXT ·gate32(SB), NOSPLIT, $0-12
	MOVL number+0(FP), AX
	INT  $0x80
	MOVL AX, ret+8(FP)
	RET
