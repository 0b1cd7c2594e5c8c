#!/usr/bin/env bash
# Measures what Cove promises, with the agent as make build makes it, beside
# the peers that are here. go-judge is built from its source; where that cannot
# be, the tables say so. It fails where a number that must be reached is missed.
#
# usage: bench.sh [flags of bench]     -only local|engine|living|server|code|gvisor|docker|sql|e2b|sdk|cluster, -write FILE, -rounds N
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/engines.sh
source scripts/engines.sh

measured() { [[ " $* " != *" -only "* || " $* " == *" -only $part "* ]]; }

scripts/build.sh
scripts/build.sh .cache/bench ./bench

flags=()
if part=local && measured "$@"; then
  judge=$(scripts/tool.sh --path go-judge 2>.cache/peers.log) || judge=
  [[ $judge ]] || echo "go-judge could not be built (.cache/peers.log); going on without it" >&2
  flags+=(-judge "$judge")
fi
if part=gvisor && measured "$@"; then
  engines_gvisor
  flags+=(-runsc "${COVE_TEST_RUNSC:+$(dirname "$COVE_TEST_RUNSC")/runsc}")
fi
if part=docker && measured "$@"; then
  engines_start engines_docker
  engines_ready
  flags+=(-docker "${COVE_TEST_DOCKER_HOST:-}")
fi
if part=sql && measured "$@"; then
  duckdb=$(scripts/duckdb.sh) || duckdb=
  flags+=(-duckdb "$duckdb")
fi
if part=e2b && measured "$@"; then
  engines_sdks
  flags+=(-e2b "${COVE_TEST_SDKS:+$COVE_TEST_SDKS/js-new/node_modules}" -node "${COVE_TEST_SDKS:+$COVE_TEST_SDKS/bin/node}")
fi
.cache/bench -cove bin/cove "${flags[@]}" "$@"
