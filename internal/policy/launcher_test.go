package policy_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

// launchers is a profile that lists what agent-bash does not: programs that
// start programs.
var launchers = policy.Profile{
	Name: "launchers",
	Allow: []string{
		"ls", "grep", "sed", "awk", "find", "echo", "env", "xargs", "nice", "nohup", "timeout", "watch", "time", "stdbuf", "setsid",
		"bash", "sh", "zsh", "busybox", "python3.12", "gawk", "parallel",
	},
	Deny: []string{"rm"},
}

func TestLaunchers(t *testing.T) {
	for _, c := range []struct{ line, rule string }{
		{`env ls; env A=1 B="$x" ls -l; env -i ls; env -u A -C /tmp ls; env; env A=1`, ""},
		{`env rm x`, policy.RuleDenied},
		{`env A=1 rm x`, policy.RuleDenied},
		{`env LANG=C ls`, ""},
		{`env -- rm x`, policy.RuleDenied},
		{`env env env rm x`, policy.RuleDenied},
		{`env eval x`, policy.RuleUnlisted},

		{`nice ls; nice -n 5 ls; nice -5 ls; nohup ls; setsid -w ls; stdbuf -oL ls; stdbuf -o L grep x f; \time -p ls; \time -f %e ls`, ""},
		{`nice rm x`, policy.RuleDenied},
		{`nice -n 5 rm x`, policy.RuleDenied},
		{`nohup rm x`, policy.RuleDenied},
		{`setsid rm x`, policy.RuleDenied},
		{`stdbuf -oL rm x`, policy.RuleDenied},
		{`\time rm x`, policy.RuleDenied},
		{`\time -o out rm x`, policy.RuleDenied},
		{`nice; timeout 5; nohup --`, ""},

		{`timeout 5 ls; timeout -k 5 10s ls; timeout --signal=KILL 5 ls; n=5; timeout "$n" ls`, ""},
		{`timeout 5 rm x`, policy.RuleDenied},
		{`timeout -s KILL 5 rm x`, policy.RuleDenied},
		{`timeout -- 5 rm x`, policy.RuleDenied},

		{`ls | xargs grep x; ls | xargs -0 -n 5 ls -l; ls | xargs; ls | xargs -I{} echo {}; ls | xargs -I % grep % f; ls | xargs -d '\n' ls`, ""},
		{`ls | xargs rm`, policy.RuleDenied},
		{`ls | xargs -0 rm`, policy.RuleDenied},
		{`ls | xargs -I{} rm {}`, policy.RuleDenied},
		{`read x < f; ls | xargs "$x"`, policy.RuleName},
		{`ls | xargs -I{} {}`, policy.RuleUnlisted},
		{`ls | xargs sed p --`, ""},
		{`ls | xargs awk '{print}'`, ""},
		{`read x < f; ls | xargs -I{} echo "$x"`, ""},
		{`ls | xargs xargs rm`, policy.RuleDenied},

		{`bash -c 'ls | grep x'; bash -ec ls; bash -e -o pipefail -c 'ls'; sh -c 'ls; echo "$1"' name arg; bash -c`, ""},
		{`bash -c ''; bash -c ' '`, ""},
		{`bash -c 'rm x'`, policy.RuleDenied},
		{`bash -c "bash -c 'bash -c \"rm x\"'"`, policy.RuleDenied},
		{`bash -c 'ls' ; sh -c 'ls $(rm x)'`, policy.RuleDenied},
		{`bash -c 'ls )'`, policy.RuleSyntax},
		{`bash -c '[[ -f x ]] && ls'`, ""},

		{`find . -exec env rm {} \;`, policy.RuleDenied},
		{`find . -exec bash -c 'rm "$1"' _ {} \;`, policy.RuleDenied},
		{`find . -exec bash -c 'ls "$1"' _ {} \;`, ""},
		{`find . -exec nice -n 5 sed -i s/a/b/ {} +`, ""},
		{`env bash -c 'env bash -c "env bash -c \"env bash -c \\\"bash -c rm\\\"\""'`, policy.RuleDenied},
		{`bash x.sh; zsh -c ls; bash -s; awk 'BEGIN {system("rm")}'; bash -c "$x"`, ""}, // for the kernel
	} {
		e, err := policy.Explain(launchers, cove.ExecRequest{Line: c.line})
		if err != nil {
			t.Fatal(err)
		}
		d := e.Decision
		switch {
		case c.rule == "" && d.Effect != cove.Allow:
			t.Errorf("%s\n\tis refused: %+v", c.line, *d.Refusal)
		case c.rule != "" && d.Effect != cove.Deny:
			t.Errorf("%s\n\tis let through, but %q must stop it", c.line, c.rule)
		case c.rule != "" && d.Refusal.Rule != c.rule:
			t.Errorf("%s\n\tis stopped by %+v, not by %q", c.line, *d.Refusal, c.rule)
		}
	}
}
