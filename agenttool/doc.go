// Package agenttool is code execution as a tool of a model: [RunPython] takes
// Python code and returns a text, whatever happens.
//
//	text := agenttool.RunPython(ctx, platform, agenttool.Options{Timeout: 10 * time.Second}, code)
//
// A model can read why something did not work and try again; it cannot handle an
// error. So code that fails, code that policy refuses, time that ran out and a
// platform that is down all come back as a sentence, in words that stay the same:
//
//	Code execution timed out after 10s
//	Python syntax error: invalid syntax (line 1)
//	Security policy blocked import: os
//	Execution failed: ZeroDivisionError: division by zero
//
// [Python] returns the same with its parts, for programs.
//
// The package works on any [cove.Platform]. It must not know how code is run, and
// must not fail.
package agenttool
