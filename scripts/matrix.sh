#!/usr/bin/env bash
# Prints which case of the conformance suite passes on which provider, on the
# engines that can be started here. With -from .cache/test.json it takes what the last
# make test-all has found.
#
# usage: matrix.sh [-write] [-from FILE] [-only fake,local,gvisor,docker,podman,microsandbox,msb,e2b]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/engines.sh
source scripts/engines.sh

go build -buildvcs=false -o .cache/matrix ./scripts/matrix
if [[ " $* " != *" -from "* ]]; then
  engines_start
  engines_ready
fi
versions=()
while read -r version; do versions+=(-version "$version"); done <.cache/engines.txt
.cache/matrix "${versions[@]}" "$@"
