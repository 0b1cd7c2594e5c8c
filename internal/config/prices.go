package config

import (
	"strings"

	"github.com/cove-sandbox/cove"
)

// Prices is what is asked for what tenants consume. Without a currency there are
// no estimates.
type Prices struct {
	Currency    string  `env:"COVE_PRICE_CURRENCY" key:"currency" shown:"none: no estimates are made" doc:"The currency of all prices, by its three letters, such as EUR."`
	SessionHour float64 `env:"COVE_PRICE_SESSION_HOUR" key:"session_hour" shown:"0" min:"0" max:"1000000000" doc:"For a sandbox that is held for an hour."`
	MemoryHour  float64 `env:"COVE_PRICE_MEMORY_GB_HOUR" key:"memory_gb_hour" shown:"0" min:"0" max:"1000000000" doc:"For a gigabyte of memory that is set aside for an hour."`
	CPUHour     float64 `env:"COVE_PRICE_CPU_HOUR" key:"cpu_hour" shown:"0" min:"0" max:"1000000000" doc:"For an hour of CPU time."`
	Execution   float64 `env:"COVE_PRICE_EXECUTION" key:"execution" shown:"0" min:"0" max:"1000000000" doc:"For a program or a piece of code that is run."`
	UploadGB    float64 `env:"COVE_PRICE_UPLOAD_GB" key:"upload_gb" shown:"0" min:"0" max:"1000000000" doc:"For a gigabyte that is sent into a sandbox."`
	DownloadGB  float64 `env:"COVE_PRICE_DOWNLOAD_GB" key:"download_gb" shown:"0" min:"0" max:"1000000000" doc:"For a gigabyte that comes out of a sandbox."`
}

// Cove returns the platform's own form.
func (p Prices) Cove() cove.Prices {
	return cove.Prices{
		Currency: p.Currency, SessionHour: p.SessionHour, MemoryHour: p.MemoryHour, CPUHour: p.CPUHour,
		Execution: p.Execution, UpGB: p.UploadGB, DownGB: p.DownloadGB,
	}
}

func (l *loader) checkPrices() error {
	p := l.config.Prices
	if p.Currency == "" && p != (Prices{}) {
		return l.wrong("COVE_PRICE_CURRENCY", "is not set and a price is; name the currency, such as EUR")
	}
	if p.Currency != "" && (len(p.Currency) != 3 || strings.Trim(p.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		return l.wrong("COVE_PRICE_CURRENCY", "%.40q is not a currency; write its three letters, such as EUR", p.Currency)
	}
	return nil
}
