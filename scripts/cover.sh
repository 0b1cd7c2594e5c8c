#!/usr/bin/env bash
# Adds up the coverage profiles of the last run of scripts/test.sh with COVE_COVER,
# prints the share of statements for each package, and fails below a bound. The page
# with the lines is .cache/cover.html.
#
# usage: cover.sh PERCENTAGE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

data=.cache/cover
echo 'mode: atomic' >"$data/profile"
grep -hv '^mode: ' "$data"/*.profile >>"$data/profile"
go run ./scripts/coverreport -least="$1" -kept="$data/kept" "$data/profile"
go tool cover -html="$data/kept" -o=.cache/cover.html
