#!/usr/bin/env bash
# Measures which statements the tests reach, over all packages together, and
# fails below 89 %. The page with the lines is .cache/cover.html.
#
# usage: cover.sh [flags of go test]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/engines.sh
source scripts/engines.sh

data=$PWD/.cache/cover
rm -rf "$data"
mkdir -p "$data/counters"
go build -buildvcs=false -o .cache/testreport ./scripts/testreport

engines_start
engines_duckdb
engines_s3
engines_sdks
engines_typescript

# Commands that tests start write counters of their own, hence a directory and
# not a profile: GOCOVERDIR is for them, the flag for the tests.
export GOCOVERDIR=$data/counters
go test -json -timeout=40m -covermode=atomic -coverpkg=./... "$@" ./... \
  -args -test.gocoverdir="$GOCOVERDIR" | .cache/testreport
unset GOCOVERDIR

go tool covdata textfmt -i="$data/counters" -o="$data/profile"
go run ./scripts/coverreport -least=89 -kept="$data/kept" "$data/profile"
go tool cover -html="$data/kept" -o=.cache/cover.html
