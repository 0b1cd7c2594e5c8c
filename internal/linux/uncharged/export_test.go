package uncharged

// Seldom is after how many looks locks are counted anyway.
const Seldom = seldom

// Grow makes it look as if the kernel's memory had grown by so much since the last count.
func (w *Watch) Grow(by uint64) { w.base, w.looks = w.held()-by, 0 }
