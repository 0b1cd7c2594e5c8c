package pypolicy

// Taken returns what may be taken from each module.
func Taken() map[string][]string {
	out := map[string][]string{}
	for module, names := range taken {
		for name := range names {
			out[module] = append(out[module], name)
		}
	}
	return out
}
