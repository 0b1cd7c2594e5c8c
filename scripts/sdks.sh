#!/usr/bin/env bash
# Installs the clients that others wrote and that Cove's faces are tested with, just as
# the lock files in internal/sdktest/locks name them, once for each state of a lock, and
# keeps them in .cache/sdks. It prints the folder that has them all:
#
#   js-new, js-old      npm e2b and @e2b/code-interpreter: node_modules
#   py-new, py-old      PyPI e2b and e2b-code-interpreter: bin/python3 sees them
#   msb                 PyPI microsandbox, the last of the clients that spoke to a server
#   mcp                 npm's conformance tool and inspector of MCP
#   tools-js, tools-py  clients of models, and frameworks for agents
#   mypy                PyPI mypy, which checks the types of our own SDK for Python
#   bin/node            Node as these need it
#
# usage: sdks.sh            installs what is missing, with npm and pip
#        sdks.sh --cached   installs nothing: status 1 if something is not there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
locks=internal/sdktest/locks
kept=$PWD/.cache/sdks
log=$kept/log

missing() {
  echo "the clients of others cannot be installed: $1" >&2
  exit 1
}

# Debian's own Node may be too old for them; scripts/setup.sh fetches one that is not.
node=
for one in "$PWD/.cache/node/22/bin/node" "$(command -v node || true)"; do
  if [[ -x $one ]] && "$one" -e 'process.exit(parseInt(process.versions.node) >= 22 ? 0 : 1)'; then
    node=$one
    break
  fi
done
[[ $node ]] || missing "there is no Node 22; install npm and run make test, which fetches one"

python=
for one in "$(command -v python3 || true)" /usr/bin/python3; do
  # Its own path, since the one that is found may choose between several.
  if [[ -x $one ]] && python=$("$one" -c 'import pip, sys; assert sys.version_info >= (3, 10); print(sys.executable)' 2>/dev/null); then
    break
  fi
done
[[ $python ]] || missing "there is no Python 3.10 with pip (Debian: python3-pip)"

key() { # key TREE
  {
    "$node" --version && echo "$python" && "$python" --version
    find "$locks" -type f \( -path "$locks/$1/*" -o -path "$locks/$1.txt" \) -print0 | sort -z | xargs -0 cat
  } | sha256sum | cut -c1-16
}

install_js() { # install_js NAME DIR
  command -v npm >/dev/null || { echo "there is no npm" && return 1; }
  cp "$locks/$1"/package*.json "$2/"
  cd "$2"
  npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=4
}

install_py() { # install_py NAME DIR
  mkdir "$2/bin"
  "$python" -m pip install --quiet --disable-pip-version-check --no-input --retries 4 --only-binary :all: --require-hashes --target "$2/lib" --requirement "$locks/$1.txt"
  printf '#!/bin/sh\nPYTHONPATH=%s exec %s "$@"\n' "\"\$(dirname \"\$0\")/../lib\"" "'$python'" >"$2/bin/python3"
  chmod 755 "$2/bin/python3"
}

names=()
for lock in "$locks"/*; do names+=("$(basename "$lock" .txt)"); done
whole=$kept/$(for name in "${names[@]}"; do key "$name"; done | sha256sum | cut -c1-16)
if [[ -d $whole ]]; then
  echo "$whole"
  exit
fi
[[ ${1:-} != --cached ]] || exit 1

mkdir -p "$kept/trees"
exec 9>"$kept/lock"
! command -v flock >/dev/null || flock 9 # another one may be at it
work=$(mktemp -d "$kept/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
: >"$log"
mkdir -p "$work/whole/bin"
ln -s "${node/#$PWD\/.cache/../../..}" "$work/whole/bin/node" # it may be in here, and move with it
for name in "${names[@]}"; do
  tree=$kept/trees/$name-$(key "$name")
  if [[ ! -d $tree ]]; then
    echo "installing $name (once for each state of its lock, log in .cache/sdks/log)" >&2
    mkdir "$work/$name"
    kind=install_py
    [[ ! -d $locks/$name ]] || kind=install_js
    # Not as a condition: set -e would not hold within.
    (set -e; "$kind" "$name" "$work/$name") >>"$log" 2>&1 </dev/null 9>&- &
    wait $! || missing "$name: $(tail -n 1 "$log") (log in .cache/sdks/log)"
    mv -T "$work/$name" "$tree"
  fi
  ln -s "../trees/$(basename "$tree")" "$work/whole/$name"
done
[[ -d $whole ]] || mv -T "$work/whole" "$whole"
echo "$whole"
