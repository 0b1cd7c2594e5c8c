#!/usr/bin/env bash
# Runs every fuzz target for a while, one after the other. A crasher is written
# to the target's testdata/fuzz and fails the run; the other targets still run.
#
#   FUZZTIME=30s  how long each target runs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
while read -r dir target; do
  echo "fuzz: $target in $dir"
  # From within, since not all folders are of one module.
  go test -C "$dir" -run='^$' -fuzz="^$target\$" -fuzztime="${FUZZTIME:-30s}" . || failed+=("$target")
done < <(grep -rhoH --include='*_test.go' -E '^func Fuzz[A-Za-z0-9_]+' . |
  sed -E 's#/[^/]*:func # #' | sort -u)

if ((${#failed[@]})); then
  echo "fuzz: ${failed[*]} failed" >&2
  exit 1
fi
