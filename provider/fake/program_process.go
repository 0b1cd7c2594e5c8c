package fake

import (
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/cove-sandbox/cove"
)

func runTrue(*call) int  { return 0 }
func runFalse(*call) int { return 1 }

// say prints a line and succeeds.
func (c *call) say(text string) int {
	if _, err := io.WriteString(c.out, text+"\n"); err != nil {
		return c.fault("write error", err)
	}
	return 0
}

func runPwd(c *call) int      { return c.say(c.dir) }
func runWhoami(c *call) int   { return c.say("sandbox") }
func runHostname(c *call) int { return c.say(c.p.m.facts.Load().host) }
func runNproc(c *call) int    { return c.say(strconv.Itoa(c.p.m.facts.Load().cpus)) }

func runUname(c *call) int {
	opts, _, err := c.options("asnrm")
	if err != nil {
		return c.complain("%v", err)
	}
	switch {
	case has(opts, "a"):
		return c.say("Linux " + c.p.m.facts.Load().host + " fake")
	case has(opts, "n"):
		return c.say(c.p.m.facts.Load().host)
	}
	return c.say("Linux")
}

func runID(c *call) int {
	opts, _, err := c.options("ugnG")
	switch {
	case err != nil:
		return c.complain("%v", err)
	case has(opts, "n"):
		return c.say("sandbox")
	case has(opts, "ugG"):
		return c.say("1000")
	}
	return c.say("uid=1000(sandbox) gid=1000(sandbox) groups=1000(sandbox)")
}

func runDate(c *call) int {
	now := time.Now().UTC()
	format := "%a %b %d %H:%M:%S UTC %Y"
	for _, arg := range c.args[1:] {
		if strings.HasPrefix(arg, "+") {
			format = arg[1:]
		}
	}
	return c.say(strings.NewReplacer(
		"%%", "%", "%s", strconv.FormatInt(now.Unix(), 10), "%N", fmt.Sprintf("%09d", now.Nanosecond()),
		"%F", now.Format(time.DateOnly), "%T", now.Format(time.TimeOnly),
		"%Y", now.Format("2006"), "%m", now.Format("01"), "%d", now.Format("02"),
		"%H", now.Format("15"), "%M", now.Format("04"), "%S", now.Format("05"),
		"%a", now.Format("Mon"), "%b", now.Format("Jan"),
	).Replace(format))
}

// runEnv prints the environment, or runs a program with a changed one.
func runEnv(c *call) int {
	next := *c
	next.env = map[string]string{}
	args := c.args[1:]
	if len(args) > 0 && args[0] == "-i" {
		args = args[1:]
	} else {
		maps.Copy(next.env, c.env)
	}
	for len(args) > 0 {
		k, v, ok := strings.Cut(args[0], "=")
		if !ok {
			break
		}
		next.env[k] = v
		args = args[1:]
	}
	if len(args) > 0 {
		return next.run(args)
	}
	if len(next.env) == 0 {
		return 0
	}
	return c.say(strings.Join(next.environ(), "\n"))
}

func runPrintenv(c *call) int {
	if len(c.args) < 2 {
		return runEnv(c)
	}
	v, ok := c.env[c.args[1]]
	if !ok {
		return 1
	}
	return c.say(v)
}

func runSleep(c *call) int {
	var total time.Duration
	for _, arg := range c.args[1:] {
		d, err := duration(arg)
		if err != nil {
			return c.complain("invalid time interval '%s'", arg)
		}
		total += min(d, forever-total)
	}
	if len(c.args) < 2 {
		return c.complain("missing operand")
	}
	if c.p.step() != nil || c.p.sleep(total) != nil || c.p.step() != nil {
		return 1
	}
	return 0
}

// duration reads 1.5, 2m or infinity.
func duration(text string) (time.Duration, error) {
	unit := time.Second
	if n := len(text) - 1; n > 0 {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[n]]; ok {
			text, unit = text[:n], u
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	if f*float64(unit) >= float64(forever) {
		return forever, nil
	}
	return time.Duration(f * float64(unit)), nil
}

// runKill is kill [-SIG] pid... and kill -0 pid.
func runKill(c *call) int {
	sig, test := cove.Signal("TERM"), false
	args := c.args[1:]
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0][1:]
		args = args[1:]
		if word == "s" && len(args) > 0 {
			word, args = args[0], args[1:]
		}
		if word == "0" {
			test = true
		} else if s, err := cove.ParseSignal(word); err == nil {
			sig = s
		} else {
			return c.complain("%s: invalid signal specification", word)
		}
	}
	if len(args) == 0 {
		_ = c.complain("usage: kill [-signal] pid...")
		return exitSyntax
	}
	code := 0
	for _, word := range args {
		pid, err := strconv.Atoi(word)
		if err != nil {
			code = c.complain("%s: arguments must be process IDs", word)
			continue
		}
		p := c.p.m.find(pid)
		if p == nil || !test && !c.p.m.signal(p, sig) {
			code = c.complain("(%d) - No such process", pid)
		}
	}
	return code
}

func runNohup(c *call) int {
	if len(c.args) < 2 {
		return c.complain("missing operand")
	}
	c.p.handle("HUP", true, false)
	return c.run(c.args[1:])
}

// runSetsid leaves the terminal; it stays in the job, so Kill finds it.
func runSetsid(c *call) int {
	args := c.args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.complain("no command specified")
	}
	c.p.m.mu.Lock()
	c.p.detached = true
	c.p.m.mu.Unlock()
	return c.run(args)
}

func runTTY(c *call) int {
	if c.p.terminal(0) == nil {
		_ = c.say("not a tty")
		return 1
	}
	return c.say("/dev/pts/0")
}

func runStty(c *call) int {
	t := c.p.terminal(0)
	if t == nil {
		return c.complain("'standard input': Inappropriate ioctl for device")
	}
	for _, arg := range c.args[1:] {
		switch arg {
		case "size":
			size := t.window()
			if code := c.say(fmt.Sprintf("%d %d", size.Rows, size.Cols)); code != 0 {
				return code
			}
		case "echo", "-echo":
			t.setEcho(arg == "echo")
		case "raw", "-raw", "sane":
		default:
			return c.complain("invalid argument '%s'", arg)
		}
	}
	return 0
}

// runHog takes memory, and holds it for a time: hog SIZE [SECONDS].
func runHog(c *call) int {
	if len(c.args) < 2 {
		return c.complain("usage: hog size [seconds]")
	}
	size, err := amount(c.args[1])
	if err != nil {
		return c.complain("%v", err)
	}
	if c.p.charge(int(size)) != nil {
		return 1
	}
	if len(c.args) > 2 {
		return c.run(append([]string{"sleep"}, c.args[2:]...))
	}
	return 0
}
