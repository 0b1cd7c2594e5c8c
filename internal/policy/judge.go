package policy

import (
	"fmt"
	"unicode/utf8"

	"github.com/cove-sandbox/cove"
)

// judge collects what one command does. Judging goes on after a refusal, so
// that all programs are found; the first refusal is the answer.
type judge struct {
	list     *list
	programs []Program
	refusal  *cove.Refusal
	question *cove.Refusal // a person must agree
	nested   int           // shells within shells
}

// place is where a word starts, from 1; zero for what has no place.
type place struct{ line, column int }

const maxWord = 80

// shown is a word as it can stand in a refusal.
func shown(word string) string {
	if len(word) <= maxWord {
		return word
	}
	cut := maxWord
	for cut > 0 && !utf8.RuneStart(word[cut]) {
		cut--
	}
	return word[:cut] + "…"
}

func (j *judge) refuse(at place, rule, word, format string, args ...any) {
	if j.refusal == nil {
		j.refusal = refusal(at, rule, word, fmt.Sprintf(format, args...))
	}
}

func (j *judge) ask(at place, word, format string, args ...any) {
	if j.question == nil {
		j.question = refusal(at, RuleApproval, word, fmt.Sprintf(format, args...))
	}
}

func refusal(at place, rule, word, reason string) *cove.Refusal {
	return &cove.Refusal{Rule: rule, Reason: reason, Word: shown(word), Line: at.line, Column: at.column}
}

func (j *judge) decision() cove.Decision {
	switch {
	case j.refusal != nil:
		return cove.Decision{Effect: cove.Deny, Layer: cove.Content, Refusal: j.refusal}
	case j.question != nil:
		return cove.Decision{Effect: cove.Ask, Layer: cove.Content, Refusal: j.question, Limits: j.list.limits, Programs: j.list.programs}
	}
	return cove.Decision{Effect: cove.Allow, Limits: j.list.limits, Programs: j.list.programs}
}
