#!/usr/bin/env bash
# Runs a tool that tools.mod pins, the bundler of the console, which bundle.mod pins,
# a peer that peers.mod pins and make bench compares us with, or the S3 server of the
# tests, which s3.mod pins. It is built once for each state of that file and kept in
# .cache/tools.
#
# usage: tool.sh golangci-lint|govulncheck|esbuild|go-judge|versitygw [arguments]
#        tool.sh --path NAME     builds it and prints where it is
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

only_path=
if [[ $1 == --path ]]; then
  only_path=yes
  shift
fi
name=$1
shift
list=tools.mod
case $name in
  go-judge) list=peers.mod ;;
  esbuild) list=bundle.mod ;;
  versitygw) list=s3.mod ;;
esac
key=$({ go version && cat "$root/$list"; } | sha256sum | cut -c1-16)
tool=$root/.cache/tools/$key/$name
if [[ ! -x $tool ]]; then
  path=$(cd "$root" && go list -modfile="$list" -f '{{.ImportPath}}' tool | grep "/$name\$")
  echo "building $name (once; this takes some minutes)" >&2
  (cd "$root" && go build -modfile="$list" -buildvcs=false -o "$tool" "$path")
fi
if [[ $only_path ]]; then
  echo "$tool"
  exit
fi
exec "$tool" "$@"
