package escape

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// exchangeTime is how long an address may take to say something.
const exchangeTime = 3 * time.Second

// exchange calls an address and asks for a page: what counts is an answer. Where
// all addresses are in the sandbox itself (local), its own kernel takes calls and
// refuses them.
func exchange(address, page string, local bool) (said, by string) {
	c, err := net.DialTimeout("tcp", address, dialTime) //nolint:noctx // it is bounded
	switch {
	case err == nil:
	case errors.Is(err, syscall.ECONNREFUSED) && !local:
		return "refused by " + address, ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", "no answer"
	default:
		return "", meaning(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(exchangeTime))
	_, wrote := io.WriteString(c, "GET "+page+" HTTP/1.0\r\nHost: x\r\n\r\n")
	text, err := io.ReadAll(io.LimitReader(c, 4096))
	err = errors.Join(wrote, err) // who writes first may be the one who is told
	switch {
	case len(text) > 0:
		return string(text), ""
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "", meaning(syscall.ECONNRESET)
	}
	return "somebody took the call and said nothing", ""
}

// exchangeAll calls many addresses at once, none of which may answer.
func exchangeAll(addresses []string, local bool) verdict {
	var t tally
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, address := range addresses {
		wait.Go(func() {
			said, by := exchange(address, "/", local)
			mu.Lock()
			defer mu.Unlock()
			if by == "" {
				t.through("reached " + address + ": " + said)
			} else {
				t.stop(by, address)
			}
		})
	}
	wait.Wait()
	return t.verdict()
}

// Addresses that no way out may lead to.
var (
	privateAddresses  = []string{"10.0.0.1", "172.17.0.1", "192.168.1.1", "100.64.0.1", "0.0.0.1", "198.18.99.99", "224.0.0.1", "255.255.255.255"}
	metadataAddresses = []string{"169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254", "192.0.0.192"}
	wrappedAddresses  = []string{
		"::ffff:169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::1", "2002:a9fe:a9fe::", "fd00::1", "fe80::1", "fec0::1", "ff02::1", "::7f00:1",
	}
	rawAddresses = []string{"192.0.2.1", "198.51.100.1", "203.0.113.1", "10.0.0.1", "169.254.169.254", "2001:db8::1", "fd00::1", "::ffff:192.0.2.1"}
)

// callOpen calls addresses where the network is open.
func callOpen(addresses []string) func(mission) verdict {
	return func(m mission) verdict {
		return exchangeAll(ports(append(slices.Clone(addresses), m.Private...), "22", "80", "443"), true)
	}
}

func callRaw(mission) verdict { return exchangeAll(ports(rawAddresses, "53", "80", "443"), false) }

// nameServer is the one that the sandbox was given, or "".
func nameServer() string {
	text, _ := content("/etc/resolv.conf") // none is as good as an error here
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "nameserver" {
			return net.JoinHostPort(f[1], "53")
		}
	}
	return ""
}

// question is a question for the address of a name.
func question(id uint16, name string) []byte {
	b := binary.BigEndian.AppendUint16(nil, id)
	b = append(b, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0, 0, 1, 0, 1)
}

// answered returns the address in an answer to a question, if it has one.
func answered(b, question []byte) string {
	const head, tail = 12, 12 // of a record: a pointer to the name, type, class, time and length
	at := len(question)
	if len(b) < at+tail+4 || b[3]&0x0f != 0 || binary.BigEndian.Uint16(b[6:]) == 0 || at < head {
		return ""
	}
	if b[at]&0xc0 != 0xc0 || binary.BigEndian.Uint16(b[at+2:]) != 1 {
		return "" // not an address
	}
	return net.IP(b[at+tail : at+tail+4]).String()
}

// ask asks the name server for a name; "" means that it has no address.
func ask(name string) (string, error) {
	c, err := net.Dial("udp", nameServer()) //nolint:noctx // it sends nothing yet
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	q, b := question(7, name), make([]byte, 1500)
	for range 3 {
		_ = c.SetDeadline(time.Now().Add(time.Second))
		if _, err = c.Write(q); err != nil {
			return "", err
		}
		var n int
		if n, err = c.Read(b); err == nil {
			return answered(b[:n], q), nil
		}
	}
	return "", err
}

// fetch asks for a page at a name, and returns what is said or what stopped it.
func fetch(name, port, page string) (said, by string) {
	address, err := ask(name)
	switch {
	case err != nil:
		return "", meaning(err)
	case address == "":
		return "", "the name is not answered"
	}
	return exchange(net.JoinHostPort(address, port), page, true)
}

// callPrivateNames reaches the host by names on the list.
func callPrivateNames(m mission) verdict {
	var t tally
	for _, rule := range m.Names {
		name, port, err := net.SplitHostPort(rule)
		if err != nil {
			continue // one of the World, at the usual ports
		}
		if said, by := fetch(name, port, "/"); by == "" {
			t.through("reached " + rule + ": " + said)
		} else {
			t.stop(by, name)
		}
	}
	return t.verdict()
}

// sendPackets sends to others than the name server; the host knows what arrives.
func sendPackets(m mission) verdict {
	var t tally
	for _, address := range []string{m.UDP, "192.0.2.1:53", "192.0.2.1:443", "10.0.0.1:53", "169.254.169.254:80", "198.18.5.5:443", "[2001:db8::1]:53", "[fd00::1]:443"} {
		c, err := net.Dial("udp", address) //nolint:noctx // it sends nothing yet
		if err == nil {
			_ = c.SetDeadline(time.Now().Add(dialTime))
			if _, err = c.Write(question(7, "escape.invalid")); err == nil {
				_, err = c.Read(make([]byte, 512))
			}
			_ = c.Close()
		}
		switch {
		case err == nil:
			t.through("an answer from " + address)
		case errors.Is(err, os.ErrDeadlineExceeded):
			t.stop("no answer", address)
		default:
			t.stop(meaning(err), address)
		}
	}
	return t.verdict()
}

// askDenied asks for what only looks like a name on the list, and tells the host
// what must be in the record.
func askDenied(m mission) verdict {
	var t tally
	names := []string{"escape.invalid", "ESCAPE.invalid.", "xlocalhost", "localhost.escape.invalid", "x.localhost", "0x7f.1", "169.254.169.254", "2130706433", "*", "local_host"}
	for _, rule := range m.Names {
		if name, ok := strings.CutPrefix(rule, "*."); ok {
			names = append(names, name, "x"+name)
		}
	}
	for _, name := range names {
		address, err := ask(name)
		switch {
		case address != "":
			t.through(name + " is answered with " + address)
		case err != nil:
			t.stop(meaning(err), name)
		default:
			t.stop("the name is not answered", name)
		}
	}
	say(wordFact + "asked escape.invalid")
	return t.verdict()
}

// Sizes of the flood and the tunnel. A name server answers a burst, and then so
// many in a second.
const (
	floodSize     = 6000
	floodBurst    = 1000
	floodRate     = 1000
	tunnelSize    = 400
	tunnelWorkers = 16
)

// floodNames asks for more names than anybody may.
func floodNames(mission) verdict {
	c, err := net.Dial("udp", nameServer()) //nolint:noctx // it sends nothing yet
	if err != nil {
		return heldBy(meaning(err))
	}
	defer func() { _ = c.Close() }()
	began, answers := time.Now(), 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			if _, err := c.Read(b); errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
				return
			} else if err == nil {
				answers++
			}
		}
	}()
	for i := range floodSize {
		_, _ = c.Write(question(uint16(i), fmt.Sprintf("%s.escape.invalid", rand.Text())))
	}
	_ = c.SetReadDeadline(time.Now().Add(dialTime))
	<-done
	took := time.Since(began)
	if most := floodBurst + int(took.Seconds()*floodRate); answers > most {
		return breach(fmt.Sprintf("%d of %d questions are answered in %s", answers, floodSize, took.Round(time.Millisecond)))
	}
	return heldBy(fmt.Sprintf("%d of %d questions are answered, the others are dropped", answers, floodSize))
}

// tunnelNames connects to many long names; the World knows how many came out.
func tunnelNames(mission) verdict {
	var wait sync.WaitGroup
	for range tunnelWorkers {
		wait.Go(func() {
			for range tunnelSize / tunnelWorkers {
				data := strings.ToLower(rand.Text() + rand.Text())
				_, _ = fetch(data+"."+data+"."+tunnelName, "80", "/") // the World knows
			}
		})
	}
	wait.Wait()
	return heldBy("the number of names that a sandbox may use")
}

// rebind calls names whose answers change. The World knows who was reached.
func rebind(mission) verdict {
	if said, by := fetch(goodName, "80", "/"); !strings.Contains(said, strings.TrimSpace(greeting)) {
		return breach("the good server is not reached: " + said + by)
	}
	const often = 6
	var t tally
	for _, name := range []string{turnName, bothName, switchName, innerName, metaName} {
		for range often {
			if said, by := fetch(name, "80", "/"); by != "" {
				t.stop(by, name)
			} else if name != turnName {
				t.through(name + " says " + said)
			}
		}
	}
	return t.verdict()
}

// followRedirects does what a server says.
func followRedirects(m mission) verdict {
	var t tally
	for _, to := range []string{
		"169.254.169.254:80", "127.0.0.1:80", "10.11.12.13:80", "[::1]:80", "[::ffff:169.254.169.254]:80", "0.0.0.0:80", metaName + ":80", innerName + ":80", "metadata.google.internal:80", m.TCP[0],
	} {
		said, by := fetch(goodName, "80", "/?to=http://"+to+"/")
		if !strings.Contains(said, "Location: http://"+to+"/") {
			return breach("the good server does not redirect: " + said + by)
		}
		host, port, err := net.SplitHostPort(to)
		if err != nil {
			return breach(err.Error())
		}
		if net.ParseIP(host) != nil {
			said, by = exchange(to, "/", true)
		} else {
			said, by = fetch(host, port, "/")
		}
		if by == "" {
			t.through("reached " + to + ": " + said)
		} else {
			t.stop(by, to)
		}
	}
	return t.verdict()
}
