#!/usr/bin/env bash
# Builds cove as one static executable.
#
# usage: build.sh [output]     GOOS and GOARCH choose another machine
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
CGO_ENABLED=0 go build -trimpath -buildvcs=false \
  -ldflags "-s -w -X github.com/cove-sandbox/cove/internal/cli.version=$version" \
  -o "${1:-bin/cove}" ./cmd/cove
