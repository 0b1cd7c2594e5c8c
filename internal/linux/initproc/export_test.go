package initproc

// Old makes this process do without what is new in kernels.
func Old() { old = true }
