package config_test

import (
	"strings"
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/config"
)

func TestPrices(t *testing.T) {
	src := sources(t, map[string]string{"COVE_PRICE_CPU_HOUR": "0.05"})
	writeFile(t, src, "prices:\n  currency: EUR\n  session_hour: 0.01\n  memory_gb_hour: 0.002\n  cpu_hour: 3\n  execution: 0.0001\n  upload_gb: 1\n  download_gb: 2\n")
	c, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	want := cove.Prices{Currency: "EUR", SessionHour: 0.01, MemoryHour: 0.002, CPUHour: 0.05, Execution: 0.0001, UpGB: 1, DownGB: 2}
	if got := c.Prices.Cove(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if c, err = config.Load(sources(t, nil)); err != nil || c.Prices.Cove() != (cove.Prices{}) {
		t.Errorf("without prices: %+v, %v", c.Prices, err)
	}
	for text, refusal := range map[string]string{
		"COVE_PRICE_CPU_HOUR=1":    "COVE_PRICE_CURRENCY: is not set and a price is; name the currency, such as EUR",
		"COVE_PRICE_CURRENCY=euro": `COVE_PRICE_CURRENCY: "euro" is not a currency; write its three letters, such as EUR`,
		"COVE_PRICE_CURRENCY=€":    `COVE_PRICE_CURRENCY: "€" is not a currency; write its three letters, such as EUR`,
		"COVE_PRICE_EXECUTION=-1":  "COVE_PRICE_EXECUTION: -1 is out of range; use 0 to 1000000000",
		"COVE_PRICE_UPLOAD_GB=NaN": `COVE_PRICE_UPLOAD_GB: "NaN" is not a number; use 0 to 1000000000`,
	} {
		name, value, _ := strings.Cut(text, "=")
		_, err := config.Load(sources(t, map[string]string{name: value}))
		checkRefused(t, err, refusal)
	}
}
