package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Bounds on what a model says and is told.
const (
	maxCalls     = 8        // tools that are used for one reply
	maxArguments = 64 << 10 // bytes of a call
	maxAside     = 8 << 10  // bytes of what is said beside calls
	maxText      = 64 << 10 // bytes of an answer
	maxName      = 64       // bytes of the name of a tool or the id of a call
)

// converse asks the model until it has an answer, and uses the tools that it asks
// for. The last time it is told that there are no more tools.
func (c *Chat) converse(ctx context.Context, t *talk, history []*cove.Message) (*cove.ChatAnswer, error) {
	t.answer.Model = c.cfg.Model.Name()
	var on func(string)
	if t.req.OnEvent != nil {
		on = func(text string) { t.tell(cove.ChatEvent{Kind: cove.ChatToken, Text: text}) }
	}
	ask := Ask{Turns: opening(history, t.req), Tools: Tools()}
	ids := map[string]bool{}
	for round := 1; ; round++ {
		ask.Last = round == c.cfg.Rounds
		reply, err := c.cfg.Model.Next(ctx, ask, on)
		if err != nil {
			return nil, err
		}
		t.answer.Rounds = round
		if len(reply.Calls) == 0 {
			return t.finish(reply), nil
		}
		if ask.Last {
			return t.outOfRounds(), nil
		}
		said := Turn{Role: Assistant, Text: cut(reply.Text, maxAside)}
		var told []Turn
		for i, call := range reply.Calls {
			call.ID = ownID(ids, call.ID, round, i)
			text, err := t.use(ctx, i, call)
			if err != nil {
				return nil, err
			}
			said.Calls = append(said.Calls, presentable(call))
			told = append(told, Turn{Role: ToolRole, Call: call.ID, Text: text})
		}
		ask.Turns = append(append(ask.Turns, said), told...)
	}
}

// ownID returns an id that no other call of the conversation has.
func ownID(seen map[string]bool, id string, round, i int) string {
	if id == "" || len(id) > maxName || seen[id] {
		id = fmt.Sprintf("call_of_round_%d_%d", round, i)
	}
	seen[id] = true
	return id
}

// presentable is a call that every server takes back: some refuse a conversation in
// which a model wrote broken JSON. What was wrong with it the tool's answer says.
func presentable(call Call) Call {
	if len(call.Arguments) > maxArguments || !json.Valid([]byte(call.Arguments)) {
		call.Arguments = "{}"
	}
	for _, r := range call.Name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			call.Name = ""
			break
		}
	}
	if call.Name == "" || len(call.Name) > maxName {
		call.Name = "unknown"
	}
	return call
}

// finish makes the answer of the model's last reply.
func (t *talk) finish(reply *Reply) *cove.ChatAnswer {
	text := strings.TrimSpace(strings.ToValidUTF8(reply.Text, "\uFFFD"))
	why := map[End]cove.ChatStop{EndLength: cove.ChatLength, EndFiltered: cove.ChatFiltered}[reply.End]
	if len(text) > maxText {
		text, why = cut(text, maxText), cove.ChatLength
	}
	if text == "" && why == "" {
		why = cove.ChatEmpty
	}
	return t.stop(text, why)
}

// outOfRounds makes the answer where the model would go on asking for tools.
func (t *talk) outOfRounds() *cove.ChatAnswer { return t.stop("", cove.ChatRounds) }

// stop makes the answer, and says in words why it is not whole.
func (t *talk) stop(text string, why cove.ChatStop) *cove.ChatAnswer {
	note := ""
	switch why {
	case cove.ChatRounds:
		note = fmt.Sprintf("The model was asked %d times and came to no answer. Ask for less at once, or raise COVE_MODEL_ROUNDS.", t.answer.Rounds)
	case cove.ChatLength:
		note = "The model's answer got too long and ends here."
	case cove.ChatFiltered:
		note = "The model's operator held the answer back."
	case cove.ChatEmpty:
		note = "The model said nothing. Ask again in other words."
	}
	if note != "" {
		if text != "" {
			note = "\n\n" + note
		}
		t.tell(cove.ChatEvent{Kind: cove.ChatToken, Text: note})
	}
	t.answer.Message.Text, t.answer.Stopped = text+note, why
	return t.answer
}

// cut shortens a text to so many bytes, and never inside of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
