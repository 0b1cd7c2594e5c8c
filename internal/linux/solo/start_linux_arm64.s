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
// R19 is the order. R20 and R21 are what is left of a list, R22 is the number of
// the step, R23 is 1 in the child, R24 is the child or, in the child, the error.
TEXT ·code(SB),NOSPLIT|NOFRAME,$0-0
	// One message: its header, one place for 8 bytes, and room for descriptors.
	SUB	$512, RSP
	MOVD	RSP, R25
	MOVD	ZR, 0(R25)
	MOVD	ZR, 8(R25)
	ADD	$64, R25, R0
	MOVD	R0, 16(R25)
	MOVD	$1, R0
	MOVD	R0, 24(R25)
	ADD	$128, R25, R0
	MOVD	R0, 32(R25)
	MOVD	$64, R0
	MOVD	R0, 40(R25)
	MOVD	ZR, 48(R25)
	ADD	$96, R25, R0
	MOVD	R0, 64(R25)
	MOVD	$8, R0
	MOVD	R0, 72(R25)
	MOVD	$212, R8 // recvmsg
	MOVD	$3, R0
	MOVD	R25, R1
	MOVD	$0x40000000, R2 // MSG_CMSG_CLOEXEC
	SVC
	CMP	$8, R0
	BNE	quit
	MOVD	$222, R8 // mmap
	MOVD	$BASE, R0
	MOVD	96(R25), R1
	MOVD	$3, R2 // PROT_READ|PROT_WRITE
	MOVD	$0x12, R3 // MAP_PRIVATE|MAP_FIXED
	MOVD	$4, R4
	MOVD	$0, R5
	SVC
	MOVD	$BASE, R19
	CMP	R19, R0
	BNE	quit
	MOVD	$0, R22
	MOVD	$0, R23
	MOVD	OWN_STEPS(R19), R20
	MOVD	OWN_COUNT(R19), R21

step:
	CBZ	R21, done
	ADD	$1, R22
	MOVD	0(R20), R8
	MOVD	8(R20), R0
	MOVD	16(R20), R1
	MOVD	24(R20), R2
	MOVD	32(R20), R3
	MOVD	40(R20), R4
	MOVD	48(R20), R5
	SVC
	CMN	$4095, R0
	BCS	failed
	ADD	$56, R20
	SUB	$1, R21
	B	step

done:
	CBNZ	R23, search
	ADD	$1, R22
	MOVD	$220, R8 // clone
	MOVD	$0x5100, R0 // CLONE_VM|CLONE_PIDFD|CLONE_VFORK; no signal
	MOVD	$0, R1
	ADD	$HANDLE, R19, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SVC
	CMN	$4095, R0
	BCS	failed
	CBNZ	R0, parent
	MOVD	$1, R23
	MOVD	STEPS(R19), R20
	MOVD	COUNT(R19), R21
	B	step

search:
	MOVD	$2, R24 // ENOENT
	MOVD	NAMES(R19), R20
	MOVD	NAME_COUNT(R19), R21

name:
	CBZ	R21, refused
	MOVD	SEARCH(R19), R0
	CBZ	R0, execute
	MOVD	$79, R8 // newfstatat
	MOVD	$-100, R0 // AT_FDCWD
	MOVD	0(R20), R1
	ADD	$STAT, R19, R2
	MOVD	$0, R3
	SVC
	CBNZ	R0, next
	MOVWU	(STAT+16)(R19), R0
	AND	$0xf000, R0
	CMP	$0x8000, R0 // S_IFREG
	BNE	next
	MOVD	$48, R8 // faccessat
	MOVD	$-100, R0
	MOVD	0(R20), R1
	MOVD	$1, R2 // X_OK
	SVC
	CBZ	R0, execute
	MOVD	$13, R24 // EACCES

next:
	ADD	$8, R20
	SUB	$1, R21
	B	name

execute:
	MOVD	$221, R8 // execve
	MOVD	0(R20), R0
	MOVD	ARGV(R19), R1
	MOVD	ENV(R19), R2
	SVC
	NEG	R0, R24

refused:
	MOVD	$-1, R0
	MOVD	R0, FAILED(R19)
	MOVD	R24, ERRNO(R19)
	B	quit

failed:
	NEG	R0, R0
	MOVD	R0, ERRNO(R19)
	MOVD	R22, FAILED(R19)
	CBNZ	R23, quit
	B	report

parent:
	// The child has executed the program, or told in our memory why not.
	MOVD	R0, R24
	MOVD	FAILED(R19), R0
	CBNZ	R0, report
	MOVD	$436, R8 // close_range: the program has its streams
	MOVD	$4, R0
	MOVD	$7, R1
	MOVD	$0, R2
	SVC
	MOVWU	HANDLE(R19), R0
	MOVW	R0, POLLS(R19)

poll:
	MOVD	$73, R8 // ppoll
	ADD	$POLLS, R19, R0
	MOVD	$2, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SVC
	CMN	$4, R0 // EINTR
	BEQ	poll
	CMP	$0, R0
	BLE	quit
	MOVHU	(POLLS+6)(R19), R0
	CBNZ	R0, wait
	MOVD	$63, R8 // read
	MOVD	$3, R0
	ADD	$SIGNAL, R19, R1
	MOVD	$1, R2
	SVC
	CMP	$1, R0
	BNE	quit // the host is gone
	MOVD	$129, R8 // kill: a child that nobody has waited for is still that one
	MOVD	R24, R0
	MOVBU	SIGNAL(R19), R1
	SVC
	B	poll

wait:
	MOVD	$260, R8 // wait4
	MOVD	R24, R0
	ADD	$STATUS, R19, R1
	MOVD	$0x40000000, R2 // __WALL: until it executes something it has no signal
	ADD	$USAGE, R19, R3
	SVC
	CMP	R24, R0
	BNE	quit

report:
	MOVD	$64, R8 // write
	MOVD	$3, R0
	ADD	$FAILED, R19, R1
	MOVD	$REPORT_SIZE, R2
	SVC

quit:
	MOVD	$94, R8 // exit_group
	MOVD	$0, R0
	SVC
	B	quit

	// The end of what is copied.
	WORD	$0x65766f63
	WORD	$0x646e452e
	RET

// func entry() uintptr
TEXT ·entry(SB),NOSPLIT,$0-8
	MOVD	$·code(SB), R0
	MOVD	R0, ret+0(FP)
	RET
