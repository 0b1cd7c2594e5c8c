package auth

// Meters is how many keys are measured.
func (k *Keyring) Meters() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.meters)
}

// MaxRemembered is how many keys are remembered.
const MaxRemembered = maxRemembered

// Callers returns how many callers are followed.
func (w *Watch) Callers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, all := range w.callers {
		n += len(all)
	}
	return n + len(w.callers)
}

// Revoked returns how many revoked keys are remembered.
func (w *Watch) Revoked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.gone)
}
