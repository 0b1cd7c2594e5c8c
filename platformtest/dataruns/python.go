package dataruns

import (
	"fmt"

	"github.com/cove-sandbox/cove"
)

// pythonCases are about code that must pass, and code that must not.
func pythonCases() []testCase {
	cases := []testCase{{"allowed", pythonAllowed}, {"fresh", pythonFresh}, {"memory", pythonMemory}, {"exit", pythonExit}}
	for i, code := range refusedPython() {
		cases = append(cases, testCase{fmt.Sprintf("refused_%02d", i), func(r *rig) {
			r.wantRefusal(r.ask(r.platform(), python(shop, code)), cove.RunPythonPolicy, "")
		}})
	}
	return cases
}

func refusedPython() []string {
	return []string{
		"import subprocess",
		"from os import path",
		"import pandas.io.common as c",
		"import os as pandas",
		"__import__('os')",
		"eval('1')",
		"exec('x = 1')",
		"compile('1', 'f', 'eval')",
		"input()",
		"f = open",
		"().__class__.__base__.__subclasses__()",
		"import pandas as pd\npd.read_csv('/etc/passwd')",
		"import pandas as pd\ngetattr(pd, 'read' + '_csv')('/etc/passwd')",
		"import numpy as np\nnp.load('/etc/passwd')",
		"orders.to_csv('/workspace/x.csv')",
		"orders.to_pickle('x')",
		"'{0.__class__}'.format(1)",
		"import pandas as pd\npd.eval('__import__(\"os\")')",
		"lambda: open('x')",
	}
}

func pythonAllowed(r *rig) {
	for _, c := range []struct{ code, columns, row string }{
		{"import math, re, statistics, datetime\nimport numpy as np\nresult = int(np.sum([1, 2])) + math.floor(2.5)", "result", `[5]`},
		{"from datetime import date\ndate(2020, 1, 2)", "result", `["2020-01-02"]`},
		{"orders[orders['status'] == 'paid'].merge(items, left_on='id', right_on='order_id')[['sku']].drop_duplicates().sort_values('sku').head(1)", "sku", `["ink"]`},
		{"text = 'open the door'\nlen(text)", "result", `[13]`},
		{"{'a': 1, 'b': [2]}['b'][0]", "result", `[2]`},
	} {
		before := r.Failed()
		run := r.ask(r.platform(), python(shop, c.code))
		r.wantRows(run, c.columns, c.row)
		if by := run.Answer.Confined; by != cove.Hard && by != cove.Soft {
			r.Errorf("the answer says that the code was confined %q", by)
		}
		if !before && r.Failed() {
			r.Errorf("that was %s", c.code)
		}
	}
}

// pythonFresh wants nothing of one run in the next.
func pythonFresh(r *rig) {
	r.wantRows(r.ask(r.platform(), python(shop, "left = 1\norders.drop(orders.index, inplace=True)\nlen(orders)")), "result", `[0]`)
	r.wantError(r.ask(r.platform(), python(shop, "left")), cove.RunPythonFailed, "NameError")
	r.wantRows(r.ask(r.platform(), python(shop, "len(orders)")), "result", `[5]`)
}

func pythonMemory(r *rig) {
	req := python(shop, "import numpy as np\nx = []\nwhile True:\n    x.append(np.ones(10_000_000))")
	req.Timeout = cove.MaxRunTimeout
	run := r.ask(r.platform(), req)
	r.wantError(run, cove.RunPythonFailed, "needs more than the")
	r.wantRows(r.ask(r.platform(), python(shop, "len(orders)")), "result", `[5]`)
}

func pythonExit(r *rig) {
	r.wantError(r.ask(r.platform(), python(shop, "raise SystemExit(3)")), cove.RunPythonFailed)
	r.wantRows(r.ask(r.platform(), python(shop, "len(orders)")), "result", `[5]`)
}
