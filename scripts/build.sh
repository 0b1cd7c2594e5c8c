#!/usr/bin/env bash
# Builds cove as one static executable, with the lean agent of its sandboxes
# inside. A plain go build has none, and runs itself in its place. Around that goes
# a lean cove, which runs programs in local sandboxes and starts fast; everything
# else is done by the whole one inside it. That one has gVisor, DuckDB and the web
# console inside too, where these can be built: they are downloaded and compiled once.
# DuckDB needs a C compiler, the console npm.
#
# usage: build.sh [output [package]]     GOOS and GOARCH choose another machine
#   COVE_REQUIRE=gvisor,duckdb,console,…  fail where one of them cannot be built
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

output=${1:-bin/cove}
if [[ -e $output && ! -f $output ]]; then # it would be replaced, even a device
  echo "build.sh: $output is there and is not a file; choose another output" >&2
  exit 1
fi

export CGO_ENABLED=0
flags=(-trimpath -buildvcs=false)

mkdir -p .cache
work=$(mktemp -d .cache/build.XXXXXX)
trap 'rm -rf "$work"' EXIT
if [[ $(go env GOOS) == linux ]]; then
  go build "${flags[@]}" -ldflags '-s -w' -o "$work/agent" ./cmd/cove-agent
  # Laid over the tree instead of written into it: builds for two machines at
  # once do not meet, and no old agent is ever built in.
  over="\"internal/guest/agent.bin\": \"$work/agent\""
  tags=embedagent
  agent=$(sha256sum "$work/agent" | cut -c1-16)
  if gvisor=$(scripts/gvisor.sh); then
    over+=", \"internal/gvisorexe/cove-gvisor.gz\": \"$gvisor.gz\""
    tags+=,embedgvisor
    gvisor=$(sha256sum "$gvisor" | cut -c1-16)
  elif [[ ,${COVE_REQUIRE:-}, == *,gvisor,* ]]; then
    exit 1
  fi
  if duckdb=$(scripts/duckdb.sh); then
    over+=", \"internal/duckexe/cove-duckdb.gz\": \"$duckdb.gz\""
    tags+=,embedduckdb
    duckdb=$(sha256sum "$duckdb" | cut -c1-16)
  elif [[ ,${COVE_REQUIRE:-}, == *,duckdb,* ]]; then
    exit 1
  else
    echo "building without it: cove sql and questions about data will say so" >&2
  fi
  if pages=$(scripts/web.sh); then
    over+=", \"internal/console/console.tar\": \"$pages\""
    tags+=,embedconsole
  elif [[ ,${COVE_REQUIRE:-}, == *,console,* ]]; then
    exit 1
  else
    echo "building without it: / will say so" >&2
  fi
  printf '{"Replace": {%s}}\n' "$over" >"$work/overlay.json"
  flags+=(-tags "$tags" -overlay "$work/overlay.json")
fi

module=github.com/cove-sandbox/cove
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
package=${2:-./cmd/cove}
linked="-s -w -X $module/internal/cli.version=$version -X $module/internal/guest.imageID=${agent:-} -X $module/internal/gvisorexe.imageID=${gvisor:-} -X $module/internal/duckexe.imageID=${duckdb:-}"
if [[ -z ${agent:-} || $package != ./cmd/cove ]]; then
  go build "${flags[@]}" -ldflags "$linked" -o "$output" "$package"
  exit
fi
go build "${flags[@]}" -ldflags "$linked" -o "$work/whole" "$package"
printf '{"Replace": {"internal/guest/agent.bin": "%s/agent", "cmd/cove/whole.bin": "%s/whole"}}\n' "$work" "$work" >"$work/overlay.json"
flags=(-trimpath -buildvcs=false -tags "embedagent,lean" -overlay "$work/overlay.json")
go build "${flags[@]}" -ldflags "$linked -X main.imageID=$(sha256sum "$work/whole" | cut -c1-16)" -o "$work/cove" "$package"
# Copied, as every installation does: the linker writes page by page, and so the
# file would be in memory, and slower to start, until the machine needs the room.
# In large pieces, since as large as those are the pieces of memory that hold it.
mkdir -p "$(dirname "$output")"
install -m 755 /dev/null "$output.new"
dd if="$work/cove" of="$output.new" bs=4M status=none
mv -f "$output.new" "$output"
