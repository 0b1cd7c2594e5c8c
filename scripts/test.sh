#!/usr/bin/env bash
# Runs every test that can run here, with the race detector where there is a C
# compiler. Failures are shown in full; skipped tests are listed at the end. When all
# packages run and a few tests fail, those are run once more by themselves, to tell
# what needs the others beside it from what is plainly broken. The run has failed either way.
#
# Where root can, it starts the engines that providers are tested on, if one of the
# packages asks for them, and ends them. All events are in .cache/test.json afterwards.
#
# usage: test.sh [flags of go test] [packages]
#   COVE_REQUIRE=fake,local,node,…  what must be available: missing is then a failure
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/engines.sh
source scripts/engines.sh

flags=(-vet=all -timeout=40m)
race=()
if [[ $(go env CGO_ENABLED) == 1 ]] && command -v "$(go env CC)" >/dev/null; then
  race=(-race)
else
  echo "no C compiler: the race detector is off in this run" >&2
fi

packages=./...
named=()
for arg in "$@"; do
  if [[ $arg != -* ]]; then
    packages=
    named+=("$arg")
  fi
done

report=.cache/testreport
go build -buildvcs=false -o "$report" ./scripts/testreport

if engines_asked 'DOCKER|PODMAN|RUNSC|AGENT' "${named[@]:-./...}"; then engines_start; fi
if engines_asked DUCKDB "${named[@]:-./...}"; then engines_duckdb; fi
if engines_asked S3 "${named[@]:-./...}"; then engines_s3; fi
if engines_asked SDKS "${named[@]:-./...}"; then engines_sdks; fi
if engines_asked CONSOLE "${named[@]:-./...}"; then engines_console; fi
if engines_asked TYPESCRIPT "${named[@]:-./...}"; then engines_typescript; fi

# run_tests runs the packages that were named, or all. One goes without the detector
# then: whatever its sandboxes do travels through a mailbox in small pieces, and the
# detector would make that take as long as all others together. Another one goes with
# nobody beside it: its rules are about when a node must have been heard of.
slow=provider/microsandbox
timed=internal/clustertest
duckdb=cmd/cove-duckdb # a module of its own, that is built with its C++
run_tests() {
  if [[ -z $packages ]]; then
    go test -json "${flags[@]}" "${race[@]}" "$@"
    return
  fi
  local most failed=0
  mapfile -t most < <(go list ./... | grep -v -e "/$slow\$" -e "/$timed\$")
  go test -json "${flags[@]}" "${race[@]}" "$@" "${most[@]}" || failed=1
  go test -json "${flags[@]}" "${race[@]}" "$@" "./$timed" || failed=1
  go test -json "${flags[@]}" "$@" "./$slow" || failed=1
  if [[ ${COVE_TEST_DUCKDB:-} ]]; then test_duckdb "$@" ./... || failed=1; fi
  return "$failed"
}

test_duckdb() {
  CGO_ENABLED=1 GOFLAGS=-trimpath go test -C "$duckdb" -json "${flags[@]}" -vet=off "$@"
}

# run_again runs what a list of the report names, in the way it ran before.
run_again() {
  local path pattern failed=0
  while IFS=$'\t' read -r -u 3 path pattern; do
    case $path in
      */"$duckdb" | */"$duckdb"/*) test_duckdb -count=1 -run "$pattern" "$path" || failed=1 ;;
      */"$slow") go test -json "${flags[@]}" -count=1 -run "$pattern" "$path" || failed=1 ;;
      *) go test -json "${flags[@]}" "${race[@]}" -count=1 -run "$pattern" "$path" || failed=1 ;;
    esac
  done 3<"$1"
  return "$failed"
}

if [[ $packages && ${COVE_TEST_DUCKDB:-} ]]; then
  # Vet by itself: what go test remembers of it with -trimpath names the folder of
  # another checkout, which may be gone.
  CGO_ENABLED=1 go vet -C "$duckdb" ./...
fi

again=.cache/again
if run_tests "$@" | tee .cache/test.json | "$report" -again "$again"; then exit 0; fi
if [[ -z $packages || ! -s $again ]]; then exit 1; fi
echo
echo "Run once more, each by itself:"
if run_again "$again" | "$report" -wanted "$again"; then
  echo
  echo "They pass by themselves: look for what they share with others, or for what they do not wait for."
fi
exit 1
