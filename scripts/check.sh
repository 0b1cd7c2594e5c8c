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
  scripts/tool.sh govulncheck ./... && scripts/tool.sh govulncheck -C cmd/cove-gvisor ./... &&
    { ! compiler || CGO_ENABLED=1 scripts/tool.sh govulncheck -C cmd/cove-duckdb ./...; }
}

# own_module FOLDER CGO checks a module of its own: vet, lint and its list of modules.
own_module() {
  local lint
  lint=$(scripts/tool.sh --path golangci-lint)
  # As its script builds it, so that it is compiled once.
  (cd "$1" && export CGO_ENABLED="$2" GOFLAGS=-trimpath &&
    go vet ./... && "$lint" run ./... && go mod tidy -diff)
}

gvisor() { own_module cmd/cove-gvisor 0; }

compiler() { { command -v "$(go env CC)" && command -v "$(go env CXX)"; } >/dev/null; }

duckdb() {
  if ! compiler; then
    echo "no C compiler: DuckDB's executable not checked"
    [[ ,${COVE_REQUIRE:-}, != *,duckdb,* ]]
    return
  fi
  own_module cmd/cove-duckdb 1
}

# The programs that run in interpreters of sandboxes.
drivers() {
  local dir=internal/kernel/drivers f bad=0
  bash -n "$dir/bash.sh" || bad=1
  if command -v shellcheck >/dev/null; then shellcheck "$dir/bash.sh" || bad=1; fi
  for f in "$dir"/*.py internal/analyze/*.py internal/duckdb/ask/*.py provider/local/nest/*.py; do
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$f" || bad=1
  done
  if command -v node >/dev/null; then
    for f in "$dir"/*.js; do node --check "$f" || bad=1; done
  else
    echo "node is not installed: its driver not checked"
  fi
  return "$bad"
}

# What is built is of no use here. It has a directory of its own, because an
# output is replaced: root would lose /dev/null.
cross() {
  local dir status=0
  mkdir -p .cache
  dir=$(mktemp -d .cache/cross.XXXXXX)
  GOOS=linux GOARCH=$1 scripts/build.sh "$dir/cove" || status=$?
  rm -rf "$dir"
  return "$status"
}

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
step gvisor gvisor
step duckdb duckdb
step vuln vulnerabilities
step linux/amd64 cross amd64
step linux/arm64 cross arm64
step scripts scripts_clean
step drivers drivers

if ((${#failed[@]})); then
  echo "make check: ${failed[*]} failed" >&2
  exit 1
fi
