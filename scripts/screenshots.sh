#!/usr/bin/env bash
# Takes pictures of each page of the console, in both themes, with a server and a
# browser that it starts and ends.
#
# usage: screenshots.sh [folder]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/engines.sh
source scripts/engines.sh

to=$(realpath -m "${1:-.cache/screenshots}")
COVE_REQUIRE=console engines_console
[[ -d .cache/datasets ]] || bin/cove dataset generate .cache/datasets
export COVE_DATASETS=$PWD/.cache/datasets COVE_BIN=$PWD/bin/cove COVE_CONSOLE=$COVE_TEST_CONSOLE/console.tar
"$COVE_TEST_CONSOLE/bin/node" "$COVE_TEST_CONSOLE/screenshots.mjs" "$to"
echo "$to"
