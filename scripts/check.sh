#!/usr/bin/env bash
# Everything about the code that is no test: format, vet, lint, modules, known
# vulnerabilities, other machines, scripts. All steps run; the first line that
# is wrong does not hide the next.
#
#   COVE_REQUIRE=vulndb  fail where the vulnerability database is out of reach
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
step() { # step NAME COMMAND…
  local name=$1 start=$SECONDS
  shift
  if "$@"; then
    printf 'ok    %-12s %4ds\n' "$name" $((SECONDS - start))
  else
    printf 'FAIL  %-12s %4ds\n' "$name" $((SECONDS - start))
    failed+=("$name")
  fi
}

format() {
  local diff
  diff=$(scripts/tool.sh golangci-lint fmt --diff) && [[ -z $diff ]] && return
  printf '%s\nrun make fmt\n' "$diff"
  return 1
}

modern() {
  local diff
  diff=$(go fix -diff ./... 2>&1) && [[ -z $diff ]] && return
  printf '%s\nrun go fix ./...\n' "$diff"
  return 1
}

vulnerabilities() {
  # It knows when its database was updated, or could not ask.
  if [[ $(scripts/tool.sh govulncheck -version 2>&1) != *"DB updated"* ]]; then
    echo "vulnerability database not reachable: not checked"
    [[ ,${COVE_REQUIRE:-}, != *,vulndb,* ]]
    return
  fi
  scripts/tool.sh govulncheck ./...
}

cross() { GOOS=linux GOARCH=$1 scripts/build.sh /dev/null; }

scripts_clean() {
  if ! command -v shellcheck >/dev/null; then
    echo "shellcheck is not installed: scripts not checked"
    return
  fi
  shellcheck scripts/*.sh .ci/run
}

step format format
step vet go vet ./...
step modern modern
step lint scripts/tool.sh golangci-lint run ./...
step modules go mod tidy -diff
step vuln vulnerabilities
step linux/amd64 cross amd64
step linux/arm64 cross arm64
step scripts scripts_clean

if ((${#failed[@]})); then
  echo "make check: ${failed[*]} failed" >&2
  exit 1
fi
