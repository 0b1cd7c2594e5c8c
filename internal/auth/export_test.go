package auth

// Meters is how many keys are measured.
func (k *Keyring) Meters() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.meters)
}

// MaxRemembered is how many keys are remembered.
const MaxRemembered = maxRemembered
