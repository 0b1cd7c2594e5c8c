#!/usr/bin/env bash
# Starts the server that was built, on 127.0.0.1:8000 unless COVE_ADDR says
# otherwise. It prints the console's URL and where the key is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The isolating providers are not in this build yet; fake starts no programs.
export SANDBOX_PROVIDER=${SANDBOX_PROVIDER:-fake}
exec bin/cove serve "$@"
