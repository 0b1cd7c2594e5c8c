#!/usr/bin/env bash
# Measures what Cove promises, with the agent as make build makes it, beside
# the peers that are here. go-judge is built from its source; where that cannot
# be, the tables say so. It fails where a number that must be reached is missed.
#
# usage: bench.sh [flags of bench]     -only local|engine|living|server, -write FILE, -rounds N
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh
scripts/build.sh .cache/bench ./bench

judge=
if [[ " $* " != *" -only "* || " $* " == *" -only local "* ]]; then
  judge=$(scripts/tool.sh --path go-judge 2>.cache/peers.log) || judge=
  [[ $judge ]] || echo "go-judge could not be built (.cache/peers.log); going on without it" >&2
fi
exec .cache/bench -cove bin/cove -judge "$judge" "$@"
