package duckexe

// Pack makes the package one with something inside, and returns what takes it out
// again.
func Pack(packed []byte, id string) (restore func()) {
	oldImage, oldID := image, imageID
	image, imageID = packed, id
	return func() { image, imageID = oldImage, oldID }
}
