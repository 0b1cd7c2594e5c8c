#!/usr/bin/env bash
# Rewrites the files that tests compare with: runs the tests of every package
# that has the flag -update, with it. Look at git diff afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t packages < <(grep -rlE --exclude-dir=.cache --include='*_test.go' 'flag\.Bool(Var)?\(.*"update"' . | xargs -r -n1 dirname | sort -u)
((${#packages[@]})) || { echo "no test has the flag -update" >&2; exit 0; }
go test -count=1 "${packages[@]}" -update
