package cove

// EndAction is what happens to a session when its time is over.
type EndAction string

// What happens to a session when its time is over. One that is paused or stopped
// is kept for as long as the operator says, and then closed.
const (
	EndClose EndAction = ""      // it ends, and its files with it
	EndPause EndAction = "pause" // it keeps files and memory; Unsupported where the provider cannot
	EndStop  EndAction = "stop"  // it keeps its files
)

// EndActions returns every action.
func EndActions() []EndAction { return []EndAction{EndClose, EndPause, EndStop} }
