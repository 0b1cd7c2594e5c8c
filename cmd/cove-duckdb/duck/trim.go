package duck

// #include <malloc.h>
import "C"

// Trim gives memory that nothing uses back to the kernel. The allocator would keep
// it, for the thread that had it, and it counts while it is kept.
func Trim() { C.malloc_trim(0) }
