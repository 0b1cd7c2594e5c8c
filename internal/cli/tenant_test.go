package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/cove-sandbox/cove/internal/daemon"
	"github.com/cove-sandbox/cove/internal/wire"
)

func TestTenants(t *testing.T) {
	b := newBox(t).with("COVE_PRICE_CURRENCY", "EUR", "COVE_PRICE_EXECUTION", "0.25")
	b.serve(daemon.Options{Version: "dev"})
	if got := b.id("tenant", "set", "acme", "--sessions", "2", "--memory", "8g", "--cpu-seconds", "1000.5"); got != "acme" {
		t.Errorf("set %s", got)
	}
	secret := b.id("key", "create", "--tenant", "acme", "--scope", "exec,sandbox:read,sandbox:write,files:write")
	acme := b.with("COVE_URL", b.ready.URL, "COVE_API_KEY", secret)
	id := acme.id("sandbox", "create")
	acme.ok("sandbox", "exec", id, "--", "true")
	text := acme.ok("tenant", "show", "acme")
	for _, line := range []string{
		`^TENANT acme +USED +BOUND$`, `^sandboxes now +1 +2$`, `^memory now +1g +8g$`, `^cpu seconds +[0-9.]+ +1000.5$`,
		`^sandbox hours +[0-9.]+ +-$`, `^memory GB hours +[0-9.]+ +-$`, `^executions +1 +-$`, `^uploaded +0 +-$`, `^downloaded +0 +-$`,
		`^estimate +0.25 EUR +-$`,
	} {
		if !regexp.MustCompile("(?m)" + line).MatchString(text) {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	acme.fails(4, "needs the scope admin", "tenant", "show")
	acme.fails(4, "needs the scope admin", "tenant", "set", "acme")
	var w wire.Tenant
	if err := json.Unmarshal([]byte(b.ok("--json", "tenant", "show", "acme")), &w); err != nil ||
		w.Consumed.Executions != 1 || w.Quota.Sessions != 2 || w.Cost == nil || w.UpdatedAt.IsZero() {
		t.Errorf("%+v, %v", w, err)
	}
	if got := b.ok("tenant", "show"); !strings.Contains(got, "TENANT default") {
		t.Errorf("%s", got)
	}
	b.fails(2, "is not a size above 0", "tenant", "set", "acme", "--memory", "much")
	b.fails(2, "is not a tenant's name", "tenant", "set", "a/b")
	if got := b.ok("tenant"); !strings.Contains(got, "show") {
		t.Errorf("%s", got)
	}
}

func TestKeysOnce(t *testing.T) {
	b := served(t)
	b.id("key", "create", "--scope", "exec", "--idempotency-key", "k")
	b.fails(6, "whose secret was shown then", "key", "create", "--scope", "exec", "--idempotency-key", "k")
}
