package kernel

import (
	"strconv"
	"strings"

	"github.com/cove-sandbox/cove"
)

// aside starts a program with its streams on descriptors 3 to 5 as well, and nothing
// to read on its standard input: Node cannot duplicate descriptors itself. It stays as
// the parent, to which orphans go, because Node waits for none but its own children.
// It passes interrupts on to the group, and ends as the program does.
const aside = `exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>&1
pass() { trap '' INT; kill -s INT 0; trap pass INT; }
"$0" "$@" >&4 2>&5 &
trap pass INT
while wait $!; c=$?; kill -0 $!; do :; done
[ $c -le 128 ] || kill -$((c - 128)) $$
exit $c`

// nodeBoot reads the driver and calls the function that it is, with what reads more
// and what imports.
const nodeBoot = `{const f=require('fs'),r=n=>{const b=Buffer.alloc(n);for(let i=0,k;i<n;i+=k)if(!(k=f.readSync(3,b,i,n-i)))process.reallyExit(0);return b.toString()};` +
	`new(require('vm').Script)(r(+r(8)),{filename:'cove:driver'}).runInThisContext()(require,process.argv.slice(1),r,(m,o)=>o?import(m,o):import(m))}`

func node() language {
	return language{
		name: "node", program: "node", argv: []string{"sh", "-c", aside, "node", "-e", nodeBoot},
		drivers: [][]string{{"node.js"}, {"node_imports.js"}}, passes: true,
	}
}

// typescript is Node that is told to take types out of code first.
func typescript() language {
	l := node()
	l.name, l.suits = "typescript", strips
	l.argv = append(l.argv, l.name)
	return l
}

// strips reports a Node that does not take types out of code: 22.13 and 23.2 were the
// first that do.
func strips(version string) error {
	words := strings.SplitN(version, ".", 3)
	var n [2]int
	for i := range min(len(n), len(words)) {
		n[i], _ = strconv.Atoi(words[i]) // what is no number is too old
	}
	if n[0] > 23 || n[0] == 23 && n[1] >= 2 || n[0] == 22 && n[1] >= 13 {
		return nil
	}
	return cove.Errorf(cove.Unsupported, "the session's template has Node %.20s, which cannot strip types from TypeScript; 22.13 is the first that can", version).
		Remedy("send JavaScript with the language node, or open a session with a template that has a newer Node").With("language", "typescript")
}
