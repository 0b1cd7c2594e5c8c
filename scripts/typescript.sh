#!/usr/bin/env bash
# Builds the package in sdk/typescript with the tools that its lock names, once for each
# state of its files, and keeps it in .cache/typescript. It prints the folder:
#
#   dist, build        the package and its tests, compiled
#   cove-sandbox.tgz   the package as npm publishes it
#   bin/node           Node as it needs it
#
# usage: typescript.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
from=$PWD/sdk/typescript
kept=$PWD/.cache/typescript
log=$kept/log

missing() {
  echo "the TypeScript SDK cannot be built: $1" >&2
  exit 1
}

node=$(command -v node || true)
[[ $node ]] && "$node" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' || node=$PWD/.cache/node/22/bin/node
[[ -x $node ]] || missing "there is no Node 20; install npm and run make test"
command -v npm >/dev/null || missing "there is no npm"

parts=(LICENSE package.json package-lock.json tsconfig.json tsconfig.test.json platform.mjs README.md src test)
key=$({ "$node" --version && cat scripts/typescript.sh && cd "$from" && find "${parts[@]}" -type f -print0 | sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-16)
whole=$kept/$key
if [[ -d $whole ]]; then
  echo "$whole"
  exit
fi

mkdir -p "$kept"
work=$(mktemp -d "$kept/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
build() {
  set -e
  cd "$work"
  for part in "${parts[@]}"; do cp -r "$from/$part" .; done
  npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=4
  "$node" node_modules/typescript/bin/tsc --project tsconfig.json
  "$node" node_modules/typescript/bin/tsc --project tsconfig.test.json
  npm pack --ignore-scripts
  mv cove-sandbox-*.tgz cove-sandbox.tgz
  mkdir bin
  ln -s "${node/#"$(dirname "$kept")"/../../..}" bin/node # it may be in here, and move with it
}
echo "building the TypeScript SDK (once for each state of its files, log in .cache/typescript/log)" >&2
# Not as a condition: set -e would not hold within.
(build) >"$log" 2>&1 </dev/null &
wait $! || missing "$(grep -m 1 'error TS' "$log" || tail -n 1 "$log") (log in .cache/typescript/log)"
[[ -d $whole ]] || mv -T "$work" "$whole"
echo "$whole"
