#!/usr/bin/env bash
# Runs a tool that tools.mod pins. It is built once for each state of tools.mod
# and kept in .cache/tools.
#
# usage: tool.sh golangci-lint|govulncheck [arguments]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

name=$1
shift
key=$({ go version && cat "$root/tools.mod"; } | sha256sum | cut -c1-16)
tool=$root/.cache/tools/$key/$name
if [[ ! -x $tool ]]; then
  path=$(cd "$root" && go list -modfile=tools.mod -f '{{.ImportPath}}' tool | grep "/$name\$")
  echo "building $name (once; this takes some minutes)" >&2
  (cd "$root" && go build -modfile=tools.mod -buildvcs=false -o "$tool" "$path")
fi
exec "$tool" "$@"
