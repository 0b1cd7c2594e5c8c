#!/usr/bin/env bash
# Builds cove as one static executable, with the lean agent of its sandboxes
# inside. A plain go build has none, and runs itself in its place. Around that goes
# a lean cove, which runs programs in local sandboxes and starts fast; everything
# else is done by the whole one inside it.
#
# usage: build.sh [output [package]]     GOOS and GOARCH choose another machine
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CGO_ENABLED=0
flags=(-trimpath -buildvcs=false)

mkdir -p .cache
work=$(mktemp -d .cache/build.XXXXXX)
trap 'rm -rf "$work"' EXIT
if [[ $(go env GOOS) == linux ]]; then
  go build "${flags[@]}" -ldflags '-s -w' -o "$work/agent" ./cmd/cove-agent
  # Laid over the tree instead of written into it: builds for two machines at
  # once do not meet, and no old agent is ever built in.
  printf '{"Replace": {"internal/guest/agent.bin": "%s/agent"}}\n' "$work" >"$work/overlay.json"
  flags+=(-tags embedagent -overlay "$work/overlay.json")
  agent=$(sha256sum "$work/agent" | cut -c1-16)
fi

module=github.com/cove-sandbox/cove
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
output=${1:-bin/cove}
package=${2:-./cmd/cove}
linked="-s -w -X $module/internal/cli.version=$version -X $module/internal/guest.imageID=${agent:-}"
if [[ -z ${agent:-} || $package != ./cmd/cove ]]; then
  go build "${flags[@]}" -ldflags "$linked" -o "$output" "$package"
  exit
fi
go build "${flags[@]}" -ldflags "$linked" -o "$work/whole" "$package"
printf '{"Replace": {"internal/guest/agent.bin": "%s/agent", "cmd/cove/whole.bin": "%s/whole"}}\n' "$work" "$work" >"$work/overlay.json"
flags=(-trimpath -buildvcs=false -tags embedagent,lean -overlay "$work/overlay.json")
go build "${flags[@]}" -ldflags "$linked -X main.imageID=$(sha256sum "$work/whole" | cut -c1-16)" -o "$output" "$package"
