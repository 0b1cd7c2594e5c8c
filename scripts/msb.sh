#!/usr/bin/env bash
# Fetches msb, the program of microsandbox, from its npm package, once, and keeps it
# in .cache/msb. Nothing of it is installed, and nothing is started.
#
# usage: msb.sh            fetches it and prints where it is
#        msb.sh --path     prints where it is; fails where it was not fetched
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=0.6.18
case $(uname -m) in
  x86_64) machine=x64 ;;
  aarch64) machine=arm64 ;;
  *) echo "msb.sh: there is no msb for $(uname -m)" >&2 && exit 1 ;;
esac
package=@superradcompany/microsandbox-linux-$machine-gnu@$version
dir=$PWD/.cache/msb/$version-$machine
msb=$dir/package/bin/msb

if [[ -x $msb ]]; then
  echo "$msb"
  exit
fi
if [[ ${1:-} == --path ]]; then
  echo "msb.sh: msb was not fetched" >&2
  exit 1
fi
if ! command -v npm >/dev/null; then
  echo "msb.sh: missing: npm, to fetch msb" >&2
  exit 1
fi
mkdir -p .cache/msb
new=$(mktemp -d .cache/msb/new.XXXXXX)
trap 'rm -rf "$new"' EXIT
echo "fetching msb $version (npm, 36 MB)" >&2
(cd "$new" && npm pack --silent "$package" >/dev/null && tar xzf ./*.tgz && rm ./*.tgz)
chmod 755 "$new/package/bin/msb"
rm -rf "$dir"
mv "$new" "$dir"
echo "$msb"
