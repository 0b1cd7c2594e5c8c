//go:build linux && !amd64

package escape

func calls32(mission) verdict  { return heldBy("this architecture has no 32-bit gate of that kind") }
func callsX32(mission) verdict { return heldBy("this architecture has no x32 numbers") }

// machineCalls are those that only some architectures have.
func machineCalls() []call { return nil }
