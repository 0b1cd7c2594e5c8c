package duck

/*
#include <malloc.h>
#include <stddef.h>

// The engine's own allocator, on machines for which it is built with one, would keep
// addresses that it has no use for, each arena its own. They count as memory that is
// in use, so that a thread found none when another had held all of it before.
const char *duckdb_je_malloc_conf_2_conf_harder = "retain:false";

extern int duckdb_je_mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

static void purge(void) {
	if (duckdb_je_mallctl) duckdb_je_mallctl("arena.4096.purge", NULL, NULL, NULL, 0); // 4096: all of them
}
*/
import "C"

// Trim gives memory that nothing uses back to the kernel. The allocators would keep
// it, for the thread that had it, and it counts while it is kept.
func Trim() {
	C.purge()
	C.malloc_trim(0)
}
