package main

import (
	"context"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

// Bash is the tool execute_bash_command of an agent. One value serves all
// conversations: whose sandbox a command runs in is said by the user and the
// thread, never by the model.
type Bash struct{ Platform cove.Platform }

// Conversation is whose sandbox it is.
type Conversation struct{ User, Thread string }

// Result is what the model gets to read.
type Result struct {
	Status     string `json:"status"` // success or error
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	ReturnCode int    `json:"return_code"`
	Error      string `json:"error,omitempty"` // what to do about it included
	Note       string `json:"note,omitempty"`
}

// Execute runs a command in the sandbox of the conversation, which is there from
// the first command on and keeps its files from one to the next. Everything that
// goes wrong is a Result, since the model is who reads it.
func (b Bash) Execute(ctx context.Context, who Conversation, command string) Result {
	if who.User == "" || who.Thread == "" {
		return failed(cove.Errorf(cove.Invalid, "the conversation has no user or no thread"))
	}
	s, err := b.Platform.Sessions().Open(ctx, cove.OpenRequest{Spec: cove.Spec{
		User: who.User, Thread: who.Thread, Policy: "agent-bash", Idle: 30 * time.Minute,
	}})
	if err != nil {
		return failed(err)
	}
	x, err := b.Platform.Processes(s.ID).Exec(ctx, cove.ExecRequest{Line: command, Limits: cove.Limits{Wall: 30 * time.Second}})
	if err != nil {
		return failed(err)
	}
	r := Result{Status: "success", Stdout: string(x.Stdout.Data), Stderr: string(x.Stderr.Data), ReturnCode: x.ExitCode}
	if x.Outcome != cove.Exited || x.ExitCode != 0 {
		r.Status = "error"
	}
	var notes []string
	if x.Recreated || s.Created {
		notes = append(notes, "This is a new sandbox. It had no files yet.")
	}
	if x.Restarted {
		notes = append(notes, "The sandbox was started again. Its files are kept, programs that ran in it are gone.")
	}
	if x.Outcome == cove.TimedOut {
		notes = append(notes, "The command was killed after 30 seconds. Do less at once.")
	}
	if x.Stdout.Truncated || x.Stderr.Truncated {
		notes = append(notes, "The middle of the output is left out. Write it to a file and look at parts of it.")
	}
	r.Note = strings.Join(notes, " ")
	return r
}

func failed(err error) Result {
	r := Result{Status: "error", ReturnCode: -1, Error: cove.MessageOf(err)}
	if remedy := cove.RemedyOf(err); remedy != "" {
		r.Error += "; " + remedy
	}
	return r
}
