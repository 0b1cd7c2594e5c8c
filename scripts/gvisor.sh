#!/usr/bin/env bash
# Builds cove-gvisor, gVisor as one static executable, once for each state of its
# sources, and keeps it in .cache/gvisor. It prints the path.
#
# usage: gvisor.sh            builds it if it is not there; the first time takes
#                             some minutes, and downloads gVisor's module
#        gvisor.sh --cached   builds nothing: status 1 if it is not there
#
# GOARCH chooses another machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

export CGO_ENABLED=0 GOFLAGS=-trimpath
arch=$(go env GOARCH)
sources() {
  find cmd/cove-gvisor provider/gvisor/warden -type f \( -name '*.go' -o -name 'go.*' \) ! -name '*_test.go' -print0 | sort -z
}
key=$({ go version && echo "$arch" && sources | xargs -0 sha256sum && cat "${BASH_SOURCE[0]}"; } | sha256sum | cut -c1-16)
path=$root/.cache/gvisor/$key/cove-gvisor
if [[ -x $path ]]; then
  echo "$path"
  exit
fi
[[ ${1:-} != --cached ]] || exit 1

mkdir -p "$root/.cache/gvisor"
exec 9>"$root/.cache/gvisor/lock"
! command -v flock >/dev/null || flock 9 # a build that is on its way may be this one
if [[ -x $path ]]; then
  echo "$path"
  exit
fi
echo "building gVisor (once; this takes some minutes)" >&2
work=$(mktemp -d "$root/.cache/gvisor/new.XXXXXX")
trap 'rm -rf "$work"' EXIT

build() {
  cd cmd/cove-gvisor
  local version flags
  version=$(go list -m -f '{{.Version}}' gvisor.dev/gvisor)
  flags=(-buildvcs=false -ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$version")
  if [[ linux/$arch == $(go env GOHOSTOS)/$(go env GOHOSTARCH) ]]; then
    # For another machine its filters are compiled at the start of each sandbox.
    go run -buildvcs=false ./gen >"$work/programs_gen.go"
    printf '{"Replace": {"programs_gen.go": "%s/programs_gen.go"}}\n' "$work" >"$work/overlay.json"
    flags+=(-overlay "$work/overlay.json")
  fi
  GOOS=linux go build "${flags[@]}" -o "$work/out/cove-gvisor" .
  ln -s cove-gvisor "$work/out/runsc"
  gzip -9nk "$work/out/cove-gvisor"
}
log=$root/.cache/gvisor/log
# Not as a condition: set -e would not hold within.
(build) >"$log" 2>&1 9>&- &
if ! wait $!; then
  echo "gVisor cannot be built: $(tail -n 1 "$log") (log in .cache/gvisor/log)" >&2
  exit 1
fi
mv -T "$work/out" "$(dirname "$path")"
echo "$path"
