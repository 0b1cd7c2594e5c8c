#!/usr/bin/env bash
# Runs every test that can run here, with the race detector where there is a C
# compiler. Failures are shown in full; skipped tests are listed at the end.
#
# usage: test.sh [flags of go test] [packages]
#   COVE_REQUIRE=fake,local,…  what must be available: missing is then a failure
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

flags=(-vet=all -timeout=20m)
if [[ $(go env CGO_ENABLED) == 1 ]] && command -v "$(go env CC)" >/dev/null; then
  flags+=(-race)
else
  echo "no C compiler: the race detector is off in this run" >&2
fi

packages=./...
for arg in "$@"; do
  [[ $arg == -* ]] || packages=
done

report=.cache/testreport
go build -buildvcs=false -o "$report" ./scripts/testreport

# shellcheck disable=SC2086 # empty means that the arguments name the packages
go test -json "${flags[@]}" "$@" $packages | "$report"
