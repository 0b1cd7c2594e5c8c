#!/usr/bin/env bash
# Breaks a cluster for five minutes and checks what its clients were told. It prints
# the seed, which repeats the run, and where the history is: scripts/faultcheck reads
# it again. The logs of the nodes are beside it.
#
# usage: fault.sh [flags of go test]
#   COVE_FAULT_SEED=N   the run of that seed, or of several, one after the other; otherwise another one each time
#   COVE_FAULT_TIME=5m  for how long things are broken
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache/fault
export COVE_FAULT_TIME=${COVE_FAULT_TIME:-5m} COVE_FAULT_SEED=${COVE_FAULT_SEED:-$RANDOM$RANDOM}
export COVE_REQUIRE=${COVE_REQUIRE:+$COVE_REQUIRE,}cluster
failed=0
for seed in $COVE_FAULT_SEED; do
	COVE_FAULT_SEED=$seed go test -count=1 -v -timeout=2h -artifacts -outputdir="$PWD/.cache/fault" -run='^TestFaults$' "$@" ./internal/clustertest || failed=1
done
exit "$failed"
