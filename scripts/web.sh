#!/usr/bin/env bash
# Builds the web console in web/ from the npm packages that its lock names, once for
# each state of its files, and keeps it in .cache/web. It prints the archive that cove
# has inside, and that COVE_CONSOLE takes. No program of a package runs: esbuild, which
# bundles, is built from Go.
#
# usage: web.sh          the console
#        web.sh --test   checks its types, too, and builds its tests; prints the folder:
#
#          console.tar   the console
#          *.test.mjs    the tests, and what they need beside them
#          bin/node      Node as it needs it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
from=$PWD/web
kept=$PWD/.cache/web
log=$kept/log
kind=console
[[ ${1:-} != --test ]] || kind="test"

missing() {
  echo "the console cannot be built: $1" >&2
  exit 1
}

command -v npm >/dev/null || missing "there is no npm"
node=$(command -v node || true)
[[ $node ]] && "$node" -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' || node=$PWD/.cache/node/22/bin/node

parts=(package.json package-lock.json index.html src)
[[ $kind == console ]] || parts+=(tsconfig.json test)
key=$({ { [[ $kind == console ]] || "$node" --version; } && cat bundle.mod scripts/web.sh && cd "$from" && find "${parts[@]}" -type f -print0 | sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-16)
whole=$kept/$kind-$key
show() {
  if [[ $kind == console ]]; then echo "$whole/console.tar"; else echo "$whole"; fi
  exit
}
[[ ! -d $whole ]] || show

mkdir -p "$kept"
work=$(mktemp -d "$kept/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
esbuild=$(scripts/tool.sh --path esbuild)

bundle() { # bundle OUT ARGUMENTS
  local out=$1
  shift
  "$esbuild" --bundle --format=esm --outdir="$out" --log-level=warning --legal-comments=none "$@"
}

build() {
  set -e
  cd "$work"
  for part in "${parts[@]}"; do cp -r "$from/$part" .; done
  local omit=()
  [[ $kind != console ]] || omit=(--omit=dev)
  npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=4 "${omit[@]}"
  bundle pages --splitting --minify --target=es2022 --jsx=automatic --jsx-import-source=preact \
    --entry-names='[name]-[hash]' --chunk-names='[name]-[hash]' --asset-names='[name]-[hash]' src/main.tsx
  local icon
  icon=icon-$(sha256sum src/icon.svg | cut -c1-8).svg
  cp src/icon.svg "pages/$icon"
  sed -e "s/@SCRIPT@/$(basename pages/main-*.js)/" -e "s/@STYLE@/$(basename pages/main-*.css)/" -e "s/@ICON@/$icon/" index.html >pages/index.html
  licenses >pages/licenses.txt
  gzip -9n pages/*
  tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -C pages -cf console.tar .
  rm -r pages
  if [[ $kind == console ]]; then
    rm -r node_modules
    return
  fi
  "$node" node_modules/typescript/bin/tsc --project tsconfig.json
  bundle . --platform=node --target=node20 --packages=external --out-extension:.js=.mjs test/*.test.ts test/screenshots.ts
  mkdir bin
  ln -s "${node/#"$(dirname "$kept")"/../../..}" bin/node # it may be in here, and move with it
}

# licenses prints those of the packages that are in the bundle, which ask for it.
licenses() {
  local dir
  for dir in node_modules/*/ node_modules/@*/*/; do
    [[ -f $dir/package.json ]] || continue
    find "$dir" -maxdepth 1 -iname 'licen[cs]e*' -printf '== %h\n' -exec cat {} \; -exec echo \;
  done
}

echo "building the console (once for each state of its files, log in .cache/web/log)" >&2
# Not as a condition: set -e would not hold within.
(build) >"$log" 2>&1 </dev/null &
wait $! || missing "$(grep -m 1 -E 'error TS|ERROR' "$log" || tail -n 1 "$log") (log in .cache/web/log)"
[[ -d $whole ]] || mv -T "$work" "$whole"
show
