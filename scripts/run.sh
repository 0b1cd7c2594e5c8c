#!/usr/bin/env bash
# Starts the server that was built, on 127.0.0.1:8000 unless COVE_ADDR says
# otherwise. It prints the console's URL and where the key is. Where no setting names
# datasets, it serves three small ones that are made for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if bin/cove serve --print-config "$@" | grep -q '^# datasets:'; then
  [[ -d .cache/datasets ]] || bin/cove dataset generate .cache/datasets
  export COVE_DATASETS=$PWD/.cache/datasets
fi
exec bin/cove serve "$@"
