//go:build !lean

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/wire"
)

// maxChat bounds a message that comes on standard input; the platform has its own.
const maxChat = 256<<10 + 1

func (a *app) chatCommand() *cobra.Command {
	var req cove.ChatRequest
	cmd := &cobra.Command{
		Use:   "chat [flags] MESSAGE|-",
		Short: "Say something about data and see the answer",
		Long: `Sends one message of a chat about data. What begins with SQL: or PYTHON: is run as
it is; anything else is for the model of COVE_MODEL_URL, whose only hands are
governed questions to the datasets. The thread's name is noted on standard error;
--thread goes on with it.

The exit code is 0, or 1 when the last question failed or was refused; 124 means
that its time ran out, 125 that Cove failed.`,
		Example: `  cove chat 'SQL: SELECT count(*) FROM ecommerce.orders'
  cove chat --thread 01m1qdyb7y3wn0x7gdkb2wq0qe 'and how many of them are paid?'`,
		Args: passing(arguments(1, 1)),
		RunE: passingRun(func(cmd *cobra.Command, args []string) error {
			req.Message = args[0]
			if args[0] == "-" {
				data, err := io.ReadAll(io.LimitReader(a.sys.Stdin, maxChat))
				if err != nil {
					return cove.Wrap(cove.Unavailable, err, "the message cannot be read from standard input")
				}
				req.Message = string(data)
			}
			if err := req.Validate(); err != nil {
				return err
			}
			return a.chat(cmd, req)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&req.Thread, "thread", "", "the thread to go on with, by its `name`; a new one if not given")
	fs.StringVar(&req.Dataset, "dataset", "", "the dataset whose tables are meant, by its `id`")
	fs.StringVar(&req.Provider, "provider", "", "the `name` of the provider that answers questions to data (SANDBOX_PROVIDER)")
	fs.IntVar(&req.MaxRows, "max-rows", 0, "the `number` of rows of an answer at most, 1 to 1000; 200 if not given")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return platformError{cove.Errorf(cove.Invalid, "%s", err).Remedy("%s --help lists the flags", c.CommandPath())}
	})
	return cmd
}

func (a *app) chat(cmd *cobra.Command, req cove.ChatRequest) (err error) {
	p, err := a.lasting(cmd)
	if err != nil {
		return err
	}
	defer func() { err = joinTidy(err, p.close()) }()
	req.OnEvent = func(e cove.ChatEvent) {
		if e.Kind == cove.ChatTool {
			a.progress("%s %.200s", e.Tool, e.Text)
		}
	}
	answer, err := p.Chats().Send(cmd.Context(), req)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(wire.ChatAnswerOf(answer))
	} else {
		err = a.showChat(answer, req.Thread == "")
	}
	if err != nil {
		return err
	}
	if r := answer.Result; r != nil && r.Answer != nil && answer.Message.Error != nil {
		return runEnd(r)
	}
	if answer.Message.Error != nil {
		return exitError{exitProblem}
	}
	return nil
}

// showChat shows the answer of an assistant: the rows where a query was run as it
// is, and otherwise its words.
func (a *app) showChat(c *cove.ChatAnswer, fresh bool) error {
	direct := c.Model == "" && c.Result != nil && c.Result.Answer != nil
	var err error
	if direct {
		err = a.showRun(c.Result, false)
	} else {
		_, err = io.WriteString(a.sys.Stdout, escapeLines(strings.TrimRight(c.Message.Text, "\n"))+"\n")
	}
	if err != nil {
		return err
	}
	for _, b := range c.Blocked {
		a.note(runError(&b))
	}
	if e := c.Message.Error; e != nil && len(c.Blocked) == 0 {
		a.note(runError(e))
	}
	if !direct && c.Query != "" {
		a.note("it asked, in " + string(c.Type) + ": " + c.Query)
	}
	if c.Stopped != "" {
		a.note(fmt.Sprintf("the answer is not whole: %s", c.Stopped))
	}
	if fresh {
		a.note("thread " + c.Thread)
	}
	return nil
}
