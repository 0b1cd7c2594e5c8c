package e2bapi

// What tests of frames use.
const (
	MaxFrame       = maxFrame
	FlagEnd        = flagEnd
	FlagCompressed = flagCompressed
)

// ReadFrame is readFrame.
var ReadFrame = readFrame

// AppendFrame is appendFrame.
var AppendFrame = appendFrame
