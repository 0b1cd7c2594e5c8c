package wire

import (
	"time"

	"github.com/cove-sandbox/cove"
)

// Connection is one attempt of a sandbox to reach something.
type Connection struct {
	Number        int64      `json:"number" jsonschema:"counts up from 1"`
	At            time.Time  `json:"at"`
	Protocol      string     `json:"protocol" jsonschema:"tcp or dns"`
	Host          string     `json:"host" jsonschema:"the name, or the address where none is known"`
	Port          int        `json:"port,omitempty"`
	Address       string     `json:"address,omitempty" jsonschema:"what was dialled"`
	Allowed       bool       `json:"allowed"`
	Why           string     `json:"why,omitempty" jsonschema:"of a refusal or a failure"`
	SentBytes     cove.Bytes `json:"sent_bytes" jsonschema:"by the sandbox"`
	ReceivedBytes cove.Bytes `json:"received_bytes"`
	TookMS        float64    `json:"took_ms"`
}

// ConnectionOf returns the form of c.
func ConnectionOf(c cove.Connection) Connection {
	return Connection{
		Number: c.Number, At: c.At, Protocol: c.Protocol, Host: c.Host, Port: c.Port, Address: c.Address,
		Allowed: c.Allowed, Why: c.Why, SentBytes: c.Sent, ReceivedBytes: c.Received, TookMS: in(c.Took, time.Millisecond),
	}
}

// Cove returns the platform's own form.
func (w Connection) Cove() cove.Connection {
	return cove.Connection{
		Number: w.Number, At: w.At, Protocol: w.Protocol, Host: w.Host, Port: w.Port, Address: w.Address,
		Allowed: w.Allowed, Why: w.Why, Sent: w.SentBytes, Received: w.ReceivedBytes, Took: of(w.TookMS, time.Millisecond),
	}
}
