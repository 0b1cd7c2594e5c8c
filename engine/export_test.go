package engine

import "github.com/cove-sandbox/cove"

// BriefSpec is briefSpec.
var BriefSpec = briefSpec

// Told is told, for an answer of any type.
func Told(e *Engine, p cove.Principal, answer any) any {
	v := view{e: e, p: p}
	switch answer := answer.(type) {
	case *cove.Run:
		return told(v, answer)
	case cove.Template:
		return told(v, answer)
	case cove.Event:
		return told(v, answer)
	}
	return nil
}
