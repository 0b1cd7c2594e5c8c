package uncharged

// Count is what Look finds when the kernel's memory has grown.
func (w *Watch) Count() (Excess, bool) { return w.count() }

// Grow makes it look as if the kernel's memory had grown by so much.
func (w *Watch) Grow(by uint64) { w.base = w.held() - by }
