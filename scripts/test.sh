#!/usr/bin/env bash
# Runs a tier of the tests: the gate, which is go test -short, or with --all the full
# tier. scripts/testrun runs go test, runs a test again that failed an assertion, and
# prints the report.
#
# As root it starts the engines that providers are tested on, if a package asks for
# them, and stops them at the end. All events are in .cache/test.json afterwards, but for
# those of tests that were run again.
#
# usage: test.sh [--all] [flags of go test] [packages]
#   COVE_FULL=./engine,./store/...  the full tier of these packages, the gate of the others
#   COVE_REQUIRE=fake,local,node,…  what must be available: missing is then a failure
#   COVE_COVER=85                   if all packages run, measure coverage, too, and fail below
#                                   this percentage; .cache/cover.html shows the lines
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/engines.sh
source scripts/engines.sh

known=(fake local node python gvisor docker podman duckdb redis s3 cluster sdks console archive)
IFS=, read -ra required <<<"${COVE_REQUIRE:-}"
for name in "${required[@]}"; do
  if [[ " ${known[*]} " != *" $name "* ]]; then
    echo "test.sh: COVE_REQUIRE names \"$name\"; it takes a list with commas of: ${known[*]}" >&2
    exit 2
  fi
done

tier=gate
full=${COVE_FULL:-}
if [[ ${1:-} == --all ]]; then
  shift
  tier=full
  full=./...
fi
options=(-tier "$tier" -full "$full" -events .cache/test.json)
containers=(engines_agent engines_gvisor engines_docker)
[[ -z $full ]] || containers+=(engines_podman) # no test of the gate uses it
packages=()
for arg in "$@"; do
  [[ $arg == -* ]] || packages+=("$arg")
done
if ((${#packages[@]} == 0)); then
  packages=(./...)
  set -- "$@" ./...
fi

mkdir -p .cache
go build -buildvcs=false -o .cache/testrun ./scripts/testrun

engines_tests "${packages[@]}"
go build -o /dev/null "${packages[@]}" >/dev/null 2>&1 </dev/null & # while engines start; go test says what fails
if engines_asked COVE_TEST_SDKS; then
  scripts/sdks.sh >/dev/null 2>&1 </dev/null & # it downloads while others compile; engines_sdks waits for it
fi
if engines_asked 'COVE_TEST_(DOCKER|PODMAN|RUNSC|AGENT)|provider/alltest'; then engines_start "${containers[@]}"; fi
if engines_asked 'COVE_TEST_COVE|testkit/program'; then engines_cove; fi
if engines_asked COVE_TEST_DUCKDB; then engines_duckdb; fi
if engines_asked COVE_TEST_S3; then engines_s3; fi
if engines_asked COVE_TEST_SDKS; then engines_sdks; fi
if engines_asked COVE_TEST_CONSOLE; then engines_console; fi
if engines_asked COVE_TEST_TYPESCRIPT; then engines_typescript; fi
engines_ready

if [[ ${packages[*]} == ./... && ${COVE_TEST_DUCKDB:-} ]]; then
  options+=(-duckdb)
fi
cover=
if [[ ${packages[*]} == ./... ]]; then cover=${COVE_COVER:-}; fi # a part of the packages covers little of all
if [[ $cover ]]; then
  rm -rf .cache/cover
  mkdir -p .cache/cover
  options+=(-cover "$PWD/.cache/cover")
fi

# Programs and the kernel of this machine are inputs of the tests, too, and so is the
# image that Docker has.
installed=$({
  uname -r
  cat images/sandbox/* scripts/{image,docker,podman,engine-lib}.sh /var/lib/dpkg/status || true
  for program in node npm python3; do "$program" --version || true; done
} 2>&1 | sha256sum | cut -c1-16)

.cache/testrun "${options[@]}" -installed "$installed" -- "$@"
if [[ $cover ]]; then scripts/cover.sh "$cover"; fi
