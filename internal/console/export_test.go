package console

// Put makes the package one with an archive inside, and returns what takes it out
// again.
func Put(archive []byte) (restore func()) {
	old := image
	image = archive
	return func() { image = old }
}
