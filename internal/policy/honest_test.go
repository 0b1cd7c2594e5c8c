package policy_test

import (
	"testing"

	"github.com/cove-sandbox/cove"
	"github.com/cove-sandbox/cove/internal/policy"
)

// honest are lines that agents write and that agent-bash must let run.
var honest = []string{
	// The examples that the profile was made for.
	`echo '[{"amount": 42}, {"amount": 100}]' > data.json`,
	`jq -r '.[].amount' data.json | awk '{sum += $1} END {print sum}'`,

	// Pipes, lists and groups.
	`cat log.txt | grep -i error | sort | uniq -c | sort -rn | head -20`,
	`ls -la && echo done || echo failed`,
	`ls; pwd; date`,
	`{ echo a; echo b; } | wc -l`,
	`(cd /tmp && ls) > out.txt 2>&1`,
	`! grep -q x file && echo none`,
	`time ls`,
	`ls &`,
	`wc -l < data.csv &> /dev/null`,
	`ls 2>/dev/null | head -n 5 |& cat`,
	`/bin/ls -l; /usr/bin/jq . a.json; /usr/local/bin/python3 x.py`,
	`'ls' -l; "cat" f; l\s; $'ls' -a; e"ch"o hi`,
	"ls \\\n  -l \\\n  -a",
	"# only a comment\nls # another",
	"echo `date +%Y`",
	`echo "a" 'b' $'c\t' "d $(date) e"`,
	`echo $((1 + 2 * 3)) $(( (1+2)*3 )) $((2**10)) $((0x1f)) $((16#ff))`,
	`echo "price: 5$" 'a$b' "\$HOME" \$x`,
	`echo {a,b,c} *.txt ~/x [a-z]* ?.md`,
	`echo "${x:-default}" "${y:+set}" "${z%.txt}" "${z##*/}" "${#z}" "${z/a/b}" "${z//\//_}" "${z^^}" "${z,,}" "${z:0:3}"`,
	`echo "${arr[0]}" "${arr[@]}" "${#arr[@]}" "${!arr[@]}"`,
	`diff=$(cat a); echo "$diff"`,
	`x=5; y=$x; z="$x and $y"; echo "$z"`,
	`export STAMP=$(date); f() { local first=$1 note="(none)"; readonly all="$(cat names)"; echo "$first $note"; }; f x`,
	`export NAME=value; readonly LIMIT=10; declare -r A=1; declare -a list=(1 2 3); local_var=3`,
	`LC_ALL=C sort file.txt`,
	`TZ=UTC date +%s`,
	`PYTHONUNBUFFERED=1 python3 script.py`,
	`set -euo pipefail; ls`,
	`set -e -o pipefail; set +x; ls`,
	`set -- a b c; echo "$1" "$@" $#`,
	`shopt -s nullglob; for f in *.csv; do wc -l "$f"; done`,
	`trap '' INT; trap - INT; ls`,
	`command -v jq; type ls; command ls -l`,
	`exec > log.txt 2>&1; ls`,
	`exec 3< file; read -r line <&3`,
	`wait; ls & pid=$!; wait $pid; wait "$pid"`,
	`umask 022; pushd /tmp; popd; dirs`,
	`test -f x && echo yes; [ -d "$d" ] && ls; [ "$a" = "$b" ] || echo no; [ ! -e x ]; [ -n "$x" ]; [ "$x" ]`,
	`[[ -f x && $a == *.txt ]] && echo yes`,
	`[[ $name =~ ^[a-z]+$ ]] && echo "${BASH_REMATCH[0]}"`,
	`[[ "$a" < "$b" || ! -z $c ]]; [[ -v name ]]`,
	`printf '%s\n' "$x" "$y"; printf "%-10s|%5d\n" a 3; printf -v out '%03d' 7; printf '%(%Y)T\n'; printf -- '-%s' x`,
	`unset x y; unset -v z`,
	`true; false; :; : "${x:=5}"`,
	`exit 0`,
	`> empty.txt; printf; echo "${x:+}" "${RANDOM}"`,
	"cat <<EOF\nEOF\npython3 <<'X'\nX",
	"python3 - <<-'X'\n\tprint(1)\n\tX",
	`mapfile -t lines < file.txt; echo "${lines[0]}"; readarray -t more < <(ls)`,

	// Loops and branches.
	`for f in *.txt; do echo "$f"; cat -- "$f"; done`,
	`for i in 1 2 3; do echo $((i + 1)); done`,
	`for i in {1..10}; do echo $((i * i)); done`,
	`for ((i = 0; i < 10; i++)); do echo $i; done`,
	`i=0; while [ $i -lt 5 ]; do echo $i; i=$((i+1)); done`,
	`i=0; while ((i < 5)); do ((i++)); done; echo $((i))`,
	`i=0; until [[ $i -ge 3 ]]; do i=$((i + 1)); if [[ $i -eq 2 ]]; then continue; fi; done`,
	`n=$(wc -l < file.txt); echo $((n + 1)); [[ $n -gt 5 ]] && echo many`,
	`n=$(grep -c error log.txt); if [ "$n" -gt 0 ]; then echo "$n errors"; fi; echo $((n*2))`,
	`start=$(date +%s); ls; end=$(date +%s); echo $((end - start))`,
	`total=0; for f in a b; do c=$(cat "$f" | wc -l); total=$((total + c)); done; echo $total`,
	`x=abc123; n=${x//[^0-9]/}; echo $((n + 1))`,
	`v=$(cat version); n=$(printf %d "$v"); echo $((n + 1)); m=$(cat f | tr -dc '0-9'); echo $((m / 2))`,
	`while IFS=, read -r a b c; do echo "$a:$b:$c"; done < data.csv`,
	`while IFS= read -r line; do echo "$line"; done < <(grep x f)`,
	`cat list | while read -r name; do echo "hello $name"; done`,
	`read -r -a parts <<< "a b c"; read -rp "name? " name; read -rd '' all < f; read -n1 c; read -t 5 x`,
	`if grep -q x f; then echo a; elif [ -s f ]; then echo b; else echo c; fi`,
	`case "$1" in start|go) echo s;; *.txt) echo t;; [0-9]*) echo n;; *) echo other;; esac`,
	`count=0; ((count += 5)); echo $((count > 3 ? 1 : 0)); ((total++)); echo $((10#$count))`,
	`arr=(a b c); arr+=(d); echo ${arr[1]} "${arr[-1]}"; i=1; echo "${arr[i]}" "${arr[$i]}" "${arr[i+1]}"; arr[0]=x; arr[$i]=y`,
	`declare -A seen; while read -r w; do seen[$w]=1; done < words; echo "${!seen[@]}"`,
	`declare -A n=([a]=1 [b]=2); for k in "${!n[@]}"; do echo "$k=${n[$k]}"; n[$k]=$(( ${n[$k]:-0} + 1 )); done`,
	`SECONDS=0; ls; echo $((SECONDS)) $((RANDOM % 6))`,
	`IFS=$'\n'; for l in $(cat f); do echo "$l"; done; IFS=,; echo x`,

	// Functions.
	`greet() { echo "hello $1"; }; greet world`,
	`function add { echo $(($1 + $2)); }; add 1 2; x=$(add 3 4)`,
	`a() { b; }; b() { ls; }; a`,
	`fact() { local n=$1; if [ $n -le 1 ]; then echo 1; else echo $((n * $(printf %d "$(fact $((n-1)))"))); fi; }; fact 5`,
	`log() { echo "[$(date)] $*" >> log.txt; }; for f in a b; do log "$f"; done`,
	`unused() { nested() { ls; }; nested; ls; }`,

	// Here-documents.
	"cat > notes.md <<'EOF'\n# Title with $(nothing) `run`\nrm -rf /\nEOF",
	"cat <<EOF\nhello $USER, it is $(date)\nprice \\$5\nEOF",
	"cat <<-END\n\tindented $x\n\tEND\necho after",
	"x=$(cat <<EOF\ntext\nEOF\n)\necho \"$x\"",
	"cat <<EOF | while read -r l; do\na\nb\nEOF\necho \"$l\"; done",
	"jq . <<< '{\"a\": 1}'",
	"cat <<A\n1\nA\ncat <<B\n2\nB",
	"cat << \"X\" > f\n${not}\nX\nls",

	// find.
	`find . -name '*.py' -type f | head`,
	`find . -maxdepth 2 \( -name '*.c' -o -name '*.h' \) -print0`,
	`find /data "$HOME" ~/x ./dir -size +1M -mtime -7 -not -path '*/node_modules/*' -printf '%p %s\n'`,
	`find . -name '*.txt' -exec grep -l foo {} \;`,
	`find . -type f -exec wc -l {} + | sort -n`,
	`find . -name '*.md' -exec sed -i 's/a/b/' {} \;`,
	`dir=/workspace/src; find "$dir" -name "$pattern"; find "$dir/sub" -newer "$ref"`,
	`find`,

	// sed.
	`sed 's/a/b/g' f; sed -n '1,10p' f; sed -i.bak -e 's/x/y/' -e '/^#/d' f; sed -E 's/([a-z]+)-([0-9]+)/\2:\1/' f`,
	`sed '/start/,/end/{s/a/b/;p}' f; sed '$d' f; sed -n '$=' f; sed '2q' f; sed 5q f; sed '/x/!d' f`,
	`sed 's|/usr|/opt|g; s#a#b#' f; sed 'y/abc/xyz/' f; sed ':a;N;$!ba;s/\n/,/g' f`,
	`sed '1i\header' f; sed '/x/a after' f; sed '3c\changed' f; sed 's/a/b/w out.txt' f; sed '1~2d' f; sed --quiet --expression='p' f`,
	`n=3; sed -n "${n}p" f; sed -n "1,${n}p" f; s=1; e=5; sed -n "${s},${e}p" -- "$f"; sed "s/x/$n/" f`,
	"sed -e 'a\\' -e 'e not a command' f",
	"sed '# comment\ns/a/b/ # tail\n' f",
	`for f in ./*.txt; do sed -i 's/a/b/' "$f"; done; for g in *.txt; do sed p -- "$g"; done`,
	`sed -l 5 l f; sed -n '/a/I,/b/Ip' f; sed '0~3!{h;G}' f; sed 's/x/y/2g' f; sed -ne p f; sed -s -z p f; sed '\,a,p' f`,

	// awk.
	`awk '{print $1}' f; awk -F: '{print $1}' /etc/passwd; awk -F ',' -v OFS=';' '{$1=$1; print}' f`,
	`awk 'NR > 1 && $3 ~ /a|b/ {n++} END {print n/NR}' f`,
	`awk '/error|warn/ {c[$1]++} END {for (k in c) print k, c[k]}' log`,
	`awk -v n="$name" '$1 == n' f; awk -vx=1 'BEGIN {print x}'; awk -F'\t' 'NF' f`,
	`awk '{ s = $0; gsub(/[^a-z]/, "", s); print length(s), substr(s, 1, 3) > "out.txt" }' f`,
	`awk 'BEGIN { while ((getline line < "f") > 0) print line }'`,
	`awk '{ a = $1 / $2; b = ($3 + 1) / 2; if (a || b) printf "%.2f\n", a / b }' f`,
	"awk 'function f(x) { return x * 2 } # comment with | and system\n{ print f($1), \"a|b\" }' f",
	`awk '$1 ~ /x/ || $2 !~ /y/ { print "system" }' f`,
	`i=3; awk "NR==$i" f; awk "NR > $i && NR < 10 {print \"$i\"}" f; awk -- '{print}' f`,
	`awk 'BEGIN{x["a"]++; y = x["a"]-- ; print x["a"]}'`,
	`awk '{print}' "$f" *.txt $x`,
	`awk '{ if ((a) / 2 > 1 && (b + 1) / 2) print (c) / 2; else print ($1 + $2) / 2 }' f`,
	`awk '$1 > 1.5e3 && $2 < .5 { print 1/2, 1e5, 2. }' f`,
	"awk 'BEGIN {\n  x = 1 +\\\n 2\n}\n\n/a/ || /b/ { print }' f",

	// sort and the plain ones.
	`sort -t, -k2,2n -k1 f; sort -u -o out f; sort --key=2 --field-separator=, f; sort -t "$sep" -k "$k" f; sort -- "$f"; sort -t$'\t' f`,
	`sort -k"2$x" f; sort ./*.txt; sort data*.txt; d=out; sort "$d/x"`,
	`grep -rn "$pattern" . ; grep -E 'a|b' "$f" $x *; cut -d, -f1 f; tr a-z A-Z < f; head -c 10 "$f"; tail -n +2 f; uniq -c f; wc -l $files`,
	`jq --arg n "$x" '.[] | select(.name == $n)' f; jq -s 'add' *.json; jq -c '.a | length' "$f"`,
	`date -d '2024-01-01' +%F; date "+%Y-%m-%d $x"; ls -l --color=never $dir`,
	`cat "$@"; cat <(ls) <(ls -a); cat > >(grep x)`,

	// python.
	`python3 script.py; python3 script.py --flag "$x" < in > out; python3 -u script.py; python script.py`,
	`python3 -c 'print(1 + 2)'; python3 -c "import json,sys; print(json.load(sys.stdin)['a'])" < f`,
	`python3 -c 'import json, sys; d = json.load(open("data.json")); print(sum(x["amount"] for x in d))'`,
	"python3 - <<'EOF'\nimport csv\nfrom collections import Counter\nwith open('data.csv') as f:\n    rows = list(csv.DictReader(f))\nprint(len(rows), f\"{len(rows):5d}\")\nEOF",
	"python3 <<'PY'\nimport re\np = re.compile(r'\\d+')\nprint(p.findall('a1b22'), 1_000, 0xff, 1e5)  # done\nPY",
	"python3 - a b <<EOF\nprint('x')\nEOF",
	`python3 -c 'import math; print(math.sqrt(2))'; python3 -m json.tool < f; python3 -mjson.tool f; python3 --version; python3 -V`,
	`n=4; python3 -c "print($n * 2)"; python3 -c "print(10 / $(( n + 1 )))"`,
	`python3 <<< 'print(1)'`,
	`python3 -c 'from datetime import datetime, timedelta as td; print(datetime.now())' arg1 "$x"`,
	`python3 -c '
import sys
for line in sys.stdin:
    print(line.strip().upper())
'`,
	`python3 -c 'import json as j; print(j.dumps({"a": 1, "b": [1,2]}, indent=2)); s = "os.system"; t = """three
lines"""'`,
	`python3 -c 'import string; print(string.ascii_letters); x = {"code": 5}; y = x["code"]; lam = lambda a: a + 1'`,
}

func agentBash(t testing.TB) *policy.Policy {
	t.Helper()
	p, err := policy.New(policy.Config{Default: "agent-bash"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func explainLine(t testing.TB, p *policy.Policy, line string) policy.Explanation {
	t.Helper()
	e, err := p.Explain("agent-bash", cove.ExecRequest{Line: line})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestHonest(t *testing.T) {
	p := agentBash(t)
	for _, line := range honest {
		e := explainLine(t, p, line)
		if e.Decision.Effect != cove.Allow {
			t.Errorf("%s\n\tis refused: %+v", line, *e.Decision.Refusal)
		}
	}
}
