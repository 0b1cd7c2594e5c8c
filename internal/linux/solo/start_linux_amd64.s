#include "textflag.h"

// Where things are in an order; see order_linux.go.
#define BASE 0x10000000
#define OWN_STEPS 0
#define OWN_COUNT 8
#define STEPS 16
#define COUNT 24
#define NAMES 32
#define NAME_COUNT 40
#define SEARCH 48
#define ARGV 56
#define ENV 64
#define FAILED 72
#define ERRNO 80
#define STATUS 88
#define USAGE 96
#define REPORT_SIZE 168
#define HANDLE 240
#define SIGNAL 244
#define POLLS 248
#define STAT 264

// func code()
//
// BX is the order. R12 and R13 are what is left of a list, R14 is the number of
// the step, R15 is 1 in the child, BP is the child or, in the child, the error.
TEXT ·code(SB),NOSPLIT|NOFRAME,$0-0
	// One message: its header, one place for 8 bytes, and room for descriptors.
	SUBQ	$512, SP
	ANDQ	$~15, SP
	MOVQ	$0, 0(SP)
	MOVQ	$0, 8(SP)
	LEAQ	64(SP), AX
	MOVQ	AX, 16(SP)
	MOVQ	$1, 24(SP)
	LEAQ	128(SP), AX
	MOVQ	AX, 32(SP)
	MOVQ	$64, 40(SP)
	MOVQ	$0, 48(SP)
	LEAQ	96(SP), AX
	MOVQ	AX, 64(SP)
	MOVQ	$8, 72(SP)
	MOVQ	$47, AX // recvmsg
	MOVQ	$3, DI
	MOVQ	SP, SI
	MOVQ	$0x40000000, DX // MSG_CMSG_CLOEXEC
	SYSCALL
	CMPQ	AX, $8
	JNE	quit
	MOVQ	$9, AX // mmap
	MOVQ	$BASE, DI
	MOVQ	96(SP), SI
	MOVQ	$3, DX // PROT_READ|PROT_WRITE
	MOVQ	$0x12, R10 // MAP_PRIVATE|MAP_FIXED
	MOVQ	$4, R8
	XORQ	R9, R9
	SYSCALL
	CMPQ	AX, $BASE
	JNE	quit
	MOVQ	AX, BX
	XORQ	R14, R14
	XORQ	R15, R15
	MOVQ	OWN_STEPS(BX), R12
	MOVQ	OWN_COUNT(BX), R13

step:
	TESTQ	R13, R13
	JZ	done
	INCQ	R14
	MOVQ	0(R12), AX
	MOVQ	8(R12), DI
	MOVQ	16(R12), SI
	MOVQ	24(R12), DX
	MOVQ	32(R12), R10
	MOVQ	40(R12), R8
	MOVQ	48(R12), R9
	SYSCALL
	CMPQ	AX, $0xfffffffffffff001
	JCC	failed
	ADDQ	$56, R12
	DECQ	R13
	JMP	step

done:
	TESTQ	R15, R15
	JNZ	search
	INCQ	R14
	MOVQ	$56, AX // clone
	MOVQ	$0x5100, DI // CLONE_VM|CLONE_PIDFD|CLONE_VFORK; no signal
	XORQ	SI, SI
	LEAQ	HANDLE(BX), DX
	XORQ	R10, R10
	XORQ	R8, R8
	SYSCALL
	CMPQ	AX, $0xfffffffffffff001
	JCC	failed
	TESTQ	AX, AX
	JNZ	parent
	MOVQ	$1, R15
	MOVQ	STEPS(BX), R12
	MOVQ	COUNT(BX), R13
	JMP	step

search:
	MOVQ	$2, BP // ENOENT
	MOVQ	NAMES(BX), R12
	MOVQ	NAME_COUNT(BX), R13

name:
	TESTQ	R13, R13
	JZ	refused
	CMPQ	SEARCH(BX), $0
	JEQ	execute
	MOVQ	$262, AX // newfstatat
	MOVQ	$-100, DI // AT_FDCWD
	MOVQ	0(R12), SI
	LEAQ	STAT(BX), DX
	XORQ	R10, R10
	SYSCALL
	TESTQ	AX, AX
	JNZ	next
	MOVL	(STAT+24)(BX), AX
	ANDL	$0xf000, AX
	CMPL	AX, $0x8000 // S_IFREG
	JNE	next
	MOVQ	$269, AX // faccessat
	MOVQ	$-100, DI
	MOVQ	0(R12), SI
	MOVQ	$1, DX // X_OK
	SYSCALL
	TESTQ	AX, AX
	JZ	execute
	MOVQ	$13, BP // EACCES

next:
	ADDQ	$8, R12
	DECQ	R13
	JMP	name

execute:
	MOVQ	$59, AX // execve
	MOVQ	0(R12), DI
	MOVQ	ARGV(BX), SI
	MOVQ	ENV(BX), DX
	SYSCALL
	NEGQ	AX
	MOVQ	AX, BP

refused:
	MOVQ	$-1, FAILED(BX)
	MOVQ	BP, ERRNO(BX)
	JMP	quit

failed:
	NEGQ	AX
	MOVQ	AX, ERRNO(BX)
	MOVQ	R14, FAILED(BX)
	TESTQ	R15, R15
	JNZ	quit
	JMP	report

parent:
	// The child has executed the program, or told in our memory why not.
	MOVQ	AX, BP
	CMPQ	FAILED(BX), $0
	JNE	report
	MOVQ	$436, AX // close_range: the program has its streams
	MOVQ	$4, DI
	MOVQ	$7, SI
	XORQ	DX, DX
	SYSCALL
	MOVL	HANDLE(BX), AX
	MOVL	AX, POLLS(BX)

poll:
	MOVQ	$271, AX // ppoll
	LEAQ	POLLS(BX), DI
	MOVQ	$2, SI
	XORQ	DX, DX
	XORQ	R10, R10
	XORQ	R8, R8
	SYSCALL
	CMPQ	AX, $-4 // EINTR
	JEQ	poll
	CMPQ	AX, $0
	JLE	quit
	MOVWLZX	(POLLS+6)(BX), AX
	TESTL	AX, AX
	JNZ	wait
	XORQ	AX, AX // read
	MOVQ	$3, DI
	LEAQ	SIGNAL(BX), SI
	MOVQ	$1, DX
	SYSCALL
	CMPQ	AX, $1
	JNE	quit // the host is gone
	MOVQ	$62, AX // kill: a child that nobody has waited for is still that one
	MOVQ	BP, DI
	MOVBLZX	SIGNAL(BX), SI
	SYSCALL
	JMP	poll

wait:
	MOVQ	$61, AX // wait4
	MOVQ	BP, DI
	LEAQ	STATUS(BX), SI
	MOVQ	$0x40000000, DX // __WALL: until it executes something it has no signal
	LEAQ	USAGE(BX), R10
	SYSCALL
	CMPQ	AX, BP
	JNE	quit

report:
	MOVQ	$1, AX // write
	MOVQ	$3, DI
	LEAQ	FAILED(BX), SI
	MOVQ	$REPORT_SIZE, DX
	SYSCALL

quit:
	MOVQ	$231, AX // exit_group
	XORQ	DI, DI
	SYSCALL
	JMP	quit

	// The end of what is copied.
	LONG	$0x65766f63
	LONG	$0x646e452e
	RET

// func entry() uintptr
TEXT ·entry(SB),NOSPLIT,$0-8
	LEAQ	·code(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
