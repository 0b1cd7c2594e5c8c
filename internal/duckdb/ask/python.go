package ask

import _ "embed"

// FramePython is the source of a Python function, cove_frame(path), that reads the
// file of a [Frame] as a frame of pandas. Texts are str, and nothing is lost:
// integers with NULL are of a type of pandas that has it, integers and decimals that
// fit no machine number are Python's, and so are dates out of pandas' reach. It
// imports within the function only, and leaves no other name.
//
//go:embed frame.py
var FramePython string
