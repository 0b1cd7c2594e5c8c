#!/usr/bin/env bash
# Builds cove-duckdb, DuckDB as one static executable, once for each state of its
# sources, and keeps it in .cache/duckdb. It prints the path.
#
# usage: duckdb.sh            builds it if it is not there, which needs a C compiler;
#                             the first time downloads DuckDB's libraries
#        duckdb.sh --cached   builds nothing: status 1 if it is not there
#
# GOARCH chooses another machine, and CC and CXX its compilers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

arch=$(go env GOARCH)
export GOOS=linux GOARCH=$arch CGO_ENABLED=1 GOFLAGS=-trimpath
sources() {
  find cmd/cove-duckdb internal/duckdb/ask -type f \( -name '*.go' -o -name '*.py' -o -name 'go.*' \) ! -name '*_test.go' -print0 | sort -z
}
key=$({ go version && echo "$arch" && sources | xargs -0 sha256sum && cat scripts/duckdb.sh; } | sha256sum | cut -c1-16)
path=$root/.cache/duckdb/$key/cove-duckdb
if [[ -x $path ]]; then
  echo "$path"
  exit
fi
[[ ${1:-} != --cached ]] || exit 1

missing() {
  echo "DuckDB cannot be built: $1" >&2
  exit 1
}
if [[ linux/$arch != $(go env GOHOSTOS)/$(go env GOHOSTARCH) && -z ${CC:-} ]]; then
  case $arch in
    arm64) export CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ ;;
    amd64) export CC=x86_64-linux-gnu-gcc CXX=x86_64-linux-gnu-g++ ;;
    *) missing "it has no libraries for linux/$arch" ;;
  esac
fi
for compiler in "$(go env CC)" "$(go env CXX)"; do
  command -v "${compiler%% *}" >/dev/null || missing "there is no $compiler; install a C and C++ compiler (Debian: g++) and run make build"
done

mkdir -p "$root/.cache/duckdb"
exec 9>"$root/.cache/duckdb/lock"
! command -v flock >/dev/null || flock 9 # a build that is on its way may be this one
if [[ -x $path ]]; then
  echo "$path"
  exit
fi
echo "building DuckDB's executable (once for each state of its sources)" >&2
work=$(mktemp -d "$root/.cache/duckdb/new.XXXXXX")
trap 'rm -rf "$work"' EXIT

build() {
  # Static, since the images of sandboxes need not have the libraries of C++.
  go build -C cmd/cove-duckdb -buildvcs=false -tags netgo,osusergo -ldflags '-s -w -linkmode external -extldflags "-static"' -o "$work/out/cove-duckdb" .
  gzip -9nk "$work/out/cove-duckdb"
}
log=$root/.cache/duckdb/log
# Not as a condition: set -e would not hold within.
(build) >"$log" 2>&1 9>&- &
if ! wait $!; then
  missing "$(tail -n 1 "$log") (log in .cache/duckdb/log)"
fi
mv -T "$work/out" "$(dirname "$path")"
echo "$path"
