#!/usr/bin/env bash
# Builds the S3 server that archives are tested on, once, and prints where it is:
# Versity's gateway over a folder, which checks signatures. Nothing is started.
#
# usage: s3.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CGO_ENABLED=0 exec scripts/tool.sh --path versitygw
