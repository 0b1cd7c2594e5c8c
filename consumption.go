package cove

import "time"

// Consumption is what a tenant has used in all. A sandbox counts as long as it
// is held, whether anything runs in it or not, with all the memory that is set
// aside for it.
type Consumption struct {
	Held       time.Duration `json:"held"`              // the time that sandboxes were held, of all of them together
	MemoryTime float64       `json:"memory_gb_seconds"` // their memory in GB times the seconds it was set aside
	CPU        time.Duration `json:"cpu"`
	Executions int64         `json:"executions"` // programs and pieces of code that were run
	Up         Bytes         `json:"up"`         // into sandboxes: files, archives, and what callers sent to ports
	Down       Bytes         `json:"down"`       // and out of them
}

// Plus returns the sum.
func (c Consumption) Plus(by Consumption) Consumption {
	c.Held += by.Held
	c.MemoryTime += by.MemoryTime
	c.CPU += by.CPU
	c.Executions += by.Executions
	c.Up += by.Up
	c.Down += by.Down
	return c
}

// Prices is what an operator asks for what is consumed. The zero value has no
// currency and makes no estimate.
type Prices struct {
	Currency    string  `json:"currency"`       // such as EUR; in which all the others are
	SessionHour float64 `json:"session_hour"`   // of one sandbox that is held for an hour
	MemoryHour  float64 `json:"memory_gb_hour"` // of one GB that is set aside for an hour
	CPUHour     float64 `json:"cpu_hour"`
	Execution   float64 `json:"execution"`
	UpGB        float64 `json:"up_gb"`
	DownGB      float64 `json:"down_gb"`
}

// Cost is an estimate in money.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// Of estimates what c costs, or returns nil where there are no prices.
func (p Prices) Of(c Consumption) *Cost {
	if p.Currency == "" {
		return nil
	}
	sum := p.SessionHour*c.Held.Hours() + p.MemoryHour*c.MemoryTime/time.Hour.Seconds() + p.CPUHour*c.CPU.Hours() +
		p.Execution*float64(c.Executions) + p.UpGB*inGB(c.Up) + p.DownGB*inGB(c.Down)
	return &Cost{Amount: sum, Currency: p.Currency}
}

// MemoryTimeOf is the MemoryTime of m that is set aside for d.
func MemoryTimeOf(m Bytes, d time.Duration) float64 { return inGB(m) * d.Seconds() }

// inGB counts as sizes of sandboxes are written: 1 GB is 1024 MB.
func inGB(b Bytes) float64 { return float64(b) / float64(GiB) }
