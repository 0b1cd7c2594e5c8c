#!/usr/bin/env bash
# Starts the server that was built, on 127.0.0.1:8000 unless COVE_ADDR says
# otherwise. It prints the console's URL and where the key is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec bin/cove serve "$@"
