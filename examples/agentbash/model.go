package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Model decides what to do next: it gets the last result and returns a command,
// or the answer to the user.
type Model interface {
	Next(last *Result) (command, answer string)
}

// Script is a model that follows a list and answers with the last output.
type Script struct {
	Commands []string
	Answer   string // with %s for what the last command printed

	at int
}

// Next implements [Model].
func (s *Script) Next(last *Result) (command, answer string) {
	if s.at == len(s.Commands) {
		return "", fmt.Sprintf(s.Answer, last.Stdout)
	}
	s.at++
	return s.Commands[s.at-1], ""
}

// maxSteps bounds a conversation with a model that never comes to an end.
const maxSteps = 20

// Converse lets a model use the tool until it has an answer, and writes down what
// happens.
func Converse(ctx context.Context, m Model, bash Bash, who Conversation, out io.Writer) error {
	var last *Result
	for range maxSteps {
		command, answer := m.Next(last)
		if command == "" {
			_, err := fmt.Fprintf(out, "answer: %s", answer)
			return err
		}
		r := bash.Execute(ctx, who, command)
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "$ %s\n%s\n", command, text); err != nil {
			return err
		}
		last = &r
	}
	return fmt.Errorf("no answer after %d commands", maxSteps)
}
