package e2bapi

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/cove-sandbox/cove"
)

// Bounds on what a build is made of.
const (
	maxSteps = 256
	// ownImage is what stands for E2B's own images, which nobody else has.
	ownImage = "cove-sandbox:latest"
)

// buildSteps is what a template is made from.
type buildSteps struct {
	Image    string          `json:"fromImage"`
	Template string          `json:"fromTemplate"`
	Registry json.RawMessage `json:"fromImageRegistry"`
	Start    string          `json:"startCmd"`
	Ready    string          `json:"readyCmd"`
	Steps    []buildStep     `json:"steps"`
}

type buildStep struct {
	Type  string   `json:"type"`
	Args  []string `json:"args"`
	Files string   `json:"filesHash"`
}

// dockerfile is the steps in the words of Docker. Files of a COPY are below files/ and
// their hash.
func (b buildSteps) dockerfile() (string, error) {
	image, err := b.from()
	if err != nil {
		return "", err
	}
	if len(b.Steps) > maxSteps {
		return "", cove.InvalidField("steps", "are %d; the most is %d", len(b.Steps), maxSteps)
	}
	w := &dockerWriter{user: "root"}
	w.line("FROM", image)
	w.line("USER", w.user)
	for i, s := range b.Steps {
		if err := w.step(s); err != nil {
			return "", cove.Wrap(cove.CodeOf(err), err, "step %d, %s: %s", i+1, clip(s.Type), cove.MessageOf(err))
		}
	}
	return w.text.String(), nil
}

// from is the image that a template begins with.
func (b buildSteps) from() (string, error) {
	switch {
	case b.Start != "" || b.Ready != "":
		return "", cove.Errorf(cove.Unsupported, "a template here is files, and no program starts with it").
			Remedy("leave out startCmd and readyCmd, and start the program in each sandbox")
	case len(b.Registry) > 0 && string(b.Registry) != "null":
		return "", cove.Errorf(cove.Unsupported, "credentials of registries are not taken here").Remedy("have the server's Docker log in, or name an image that it has")
	case b.Template != "" && b.Template != "base" && b.Template != "code-interpreter-v1":
		return "", cove.Errorf(cove.Unsupported, "a template is not made from another one here").Remedy("begin with the image that the other was made from")
	case b.Template != "" || b.Image == "" || strings.HasPrefix(b.Image, "e2bdev/"):
		return ownImage, nil
	case strings.ContainsAny(b.Image, " \t\r\n\\$") || strings.HasPrefix(b.Image, "-"):
		return "", cove.InvalidField("fromImage", "%q is no image", clip(b.Image))
	}
	return b.Image, nil
}

// dockerWriter puts a Dockerfile together.
type dockerWriter struct {
	text strings.Builder
	user string
}

func (w *dockerWriter) line(words ...string) { w.text.WriteString(strings.Join(words, " ") + "\n") }

// list writes an instruction whose arguments are JSON, in which nothing is taken for
// anything else.
func (w *dockerWriter) list(word string, args ...string) error {
	text, err := json.Marshal(args)
	if err != nil {
		return err
	}
	w.line(word, string(text))
	return nil
}

func (w *dockerWriter) step(s buildStep) error {
	arg := func(i int) string {
		if i < len(s.Args) {
			return s.Args[i]
		}
		return ""
	}
	switch s.Type {
	case "RUN":
		return w.run(arg(0), arg(1))
	case "COPY":
		return w.copy(arg(0), arg(1), arg(2), arg(3), s.Files)
	case "ENV":
		if len(s.Args)%2 != 0 {
			return cove.InvalidField("args", "are names and values in turn")
		}
		for i := 0; i < len(s.Args); i += 2 {
			if !isWord(s.Args[i]) || strings.ContainsAny(s.Args[i+1], "\r\n\x00") {
				return cove.InvalidField("args", "%q cannot be set", clip(s.Args[i]))
			}
			w.line("ENV", s.Args[i]+`="`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(s.Args[i+1])+`"`)
		}
		return nil
	case "WORKDIR":
		if !isPlain(arg(0)) {
			return cove.InvalidField("args", "%q is no directory", clip(arg(0)))
		}
		w.line("WORKDIR", arg(0))
		return nil
	case "USER":
		if !isWord(arg(0)) {
			return cove.InvalidField("args", "%q is no user", clip(arg(0)))
		}
		w.user = arg(0)
		w.line("USER", w.user)
		return nil
	}
	return cove.Errorf(cove.Unsupported, "there is no such step here").Remedy("use RUN, COPY, ENV, WORKDIR and USER")
}

func (w *dockerWriter) run(command, user string) error {
	if command == "" {
		return cove.InvalidField("args", "have no command")
	}
	if user != "" && !isWord(user) {
		return cove.InvalidField("args", "%q is no user", clip(user))
	}
	if user != "" && user != w.user {
		w.line("USER", user)
		defer w.line("USER", w.user)
	}
	return w.list("RUN", "/bin/bash", "-c", command)
}

func (w *dockerWriter) copy(from, to, user, mode, hash string) error {
	if !isHash(hash) || to == "" {
		return cove.InvalidField("filesHash", "%q names no files that were sent", clip(hash))
	}
	word := "COPY"
	if user != "" {
		if !isWord(strings.ReplaceAll(user, ":", "_")) {
			return cove.InvalidField("args", "%q is no user", clip(user))
		}
		word += " --chown=" + user
	}
	if mode != "" {
		if strings.Trim(mode, "01234567") != "" || len(mode) > 5 {
			return cove.InvalidField("args", "%q is no mode", clip(mode))
		}
		word += " --chmod=" + mode
	}
	return w.list(word, path.Join(filesDir, hash, path.Clean("/"+from)), to)
}

// filesDir is where files of steps are beside the Dockerfile.
const filesDir = "files"

// isWord reports a name that means nothing else to Docker.
func isWord(text string) bool {
	return text != "" && len(text) <= 256 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" && text[0] != '-'
}

// isPlain reports a path that means nothing else to Docker.
func isPlain(text string) bool {
	return text != "" && len(text) <= 4096 && !strings.ContainsAny(text, "\r\n\x00\\\"$[]")
}

// isHash reports what can be the hash of files.
func isHash(text string) bool {
	return len(text) >= 16 && len(text) <= 128 && strings.Trim(text, "0123456789abcdef") == ""
}
