package policy

import (
	"fmt"
	"slices"
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
	asked    []string      // programs that the question is about
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

func (j *judge) ask(name arg, known string, kind Kind) {
	if j.question == nil {
		j.question = refusal(name.at, RuleApproval, name.text, fmt.Sprintf("the command policy %s wants a person to agree before %s runs", j.list.name, known))
	}
	if kind == KindProgram && !slices.Contains(j.asked, known) {
		j.asked = append(j.asked, known)
	}
}

func refusal(at place, rule, word, reason string) *cove.Refusal {
	return &cove.Refusal{Rule: rule, Reason: reason, Word: shown(word), Line: at.line, Column: at.column}
}

func (j *judge) decision() cove.Decision {
	switch {
	case j.refusal != nil:
		return cove.Decision{Effect: cove.Deny, Layer: cove.Content, Refusal: j.refusal, Programs: &cove.Programs{}}
	case j.question != nil:
		return cove.Decision{Effect: cove.Ask, Layer: cove.Content, Refusal: j.question, Limits: j.list.limits, Programs: j.executables()}
	}
	return cove.Decision{Effect: cove.Allow, Limits: j.list.limits, Programs: j.list.programs}
}

// executables are the programs of the profile and those that a person is asked about.
func (j *judge) executables() *cove.Programs {
	all := *j.list.programs
	all.Names = slices.Sorted(slices.Values(slices.Concat(all.Names, j.asked)))
	return &all
}
