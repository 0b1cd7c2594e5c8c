package cove

// EndAction is what happens to a session when its idle timeout or its fixed end is over.
type EndAction string

// What happens to a session when its time is over. A paused or stopped session is kept
// for as long as the operator says, and then closed. An empty EndAction means the
// platform's own: EndStop, or EndClose where sessions end with the process.
const (
	EndClose EndAction = "close" // it ends, and its files with it
	EndPause EndAction = "pause" // it keeps files and memory; Unsupported where the provider cannot
	EndStop  EndAction = "stop"  // it keeps its files
)

// EndActions returns every action.
func EndActions() []EndAction { return []EndAction{EndClose, EndPause, EndStop} }

// Keeps reports whether the session keeps its files when its time is over. Records of
// older versions have an empty EndAction, which meant EndClose.
func (a EndAction) Keeps() bool { return a == EndPause || a == EndStop }
