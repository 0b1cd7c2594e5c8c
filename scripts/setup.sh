#!/usr/bin/env bash
# Finds what a target needs beside Go. As root on Debian or Ubuntu it installs
# what is missing; anybody else is told the packages, and goes on with what can
# run. It prints nothing and takes no time when nothing is missing.
#
# usage: setup.sh build|test|test-all|check|bench|cluster
#   COVE_FULL=./engine  as for scripts/test.sh: test installs what test-all does
set -euo pipefail

target=${1:-build}
all=
if [[ $target == test-all || $target == test && ${COVE_FULL:-} ]]; then
  all=yes
  target=test
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf 'setup: %s\n' "$*" >&2; }

if ! command -v go >/dev/null; then
  say "Go is not in the PATH. Install Go 1.26 or later from https://go.dev/dl/ and try again."
  exit 1
fi

packages=()
reasons=()
lacks() { # lacks PACKAGES REASON
  # shellcheck disable=SC2206 # a list of package names is meant to split
  packages+=($1)
  reasons+=("$2")
}

if [[ -z ${SSL_CERT_FILE:-} && ! -e /etc/ssl/certs/ca-certificates.crt && ! -e /etc/pki/tls/certs/ca-bundle.crt ]]; then
  lacks ca-certificates "Go cannot download modules without certificates"
fi
if ! { command -v "${CC:-gcc}" && command -v "${CXX:-g++}" && [[ -e /usr/include/stdlib.h ]]; } >/dev/null; then
  lacks "g++ libc6-dev" "DuckDB, which answers questions about data, and the race detector need a C compiler"
fi
if [[ $target == bench || $target == test ]] && ! command -v bwrap >/dev/null; then
  lacks bubblewrap "the benchmark compares with it, and is tested"
fi
if [[ $all && $(uname -m) != aarch64 ]] && ! command -v qemu-aarch64 qemu-aarch64-static >/dev/null; then
  lacks qemu-user "the agent for arm64 is tested under an emulator"
fi
if [[ $target == bench || $target == test || $target == cluster ]] && ! command -v redis-server >/dev/null; then
  lacks redis-server "nodes share one, and tests start their own"
fi
if [[ $target == test || $target == cluster ]] && ! PATH=$PATH:/usr/sbin:/sbin command -v haproxy >/dev/null; then
  lacks haproxy "scripts/cluster.sh puts it in front of nodes, which is tested"
fi
if [[ $target == bench || $target == test || $target == cluster ]] && ! command -v curl >/dev/null; then
  lacks curl "the documentation shows the HTTP API with it, and sandboxes fetch with it"
fi
if [[ $target == bench || $target == test ]] && ! { [[ -x /usr/bin/python3 ]] && /usr/bin/python3 -I -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("pandas", "numpy", "matplotlib"))))'; }; then
  lacks "python3 python3-pandas python3-matplotlib" "interpreters in sandboxes and the template data are tested with them"
fi
if [[ $target == bench || $target == test ]] && [[ ! -x /usr/bin/node ]]; then
  lacks nodejs "interpreters in sandboxes are tested with it"
fi
if [[ $target == build || $target == test ]] && ! command -v npm >/dev/null; then
  lacks npm "the web console and the SDK for TypeScript are built with it, and the clients of others are tested as it installs them"
fi
if [[ $target == test ]] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
  lacks "chromium fonts-dejavu-core" "the web console is tested in it"
fi
if [[ $target == test ]] && ! { python3 -c 'import pip' || /usr/bin/python3 -c 'import pip'; } 2>/dev/null; then
  lacks python3-pip "and as pip does"
fi
if [[ $target == test ]] && ! PATH=$PATH:/usr/sbin:/sbin command -v mkfs.ext4 >/dev/null; then
  lacks e2fsprogs "workspaces on disk are file systems of their own"
fi
if [[ $target == bench || $target == test ]] && [[ $(uname -s) == Linux ]]; then
  if ! PATH=$PATH:/usr/sbin:/sbin command -v dockerd >/dev/null; then
    lacks docker.io "the provider docker is tested with a daemon that the tests start"
  fi
  if [[ $target == test ]] && ! PATH=$PATH:/usr/sbin:/sbin command -v mkfs.xfs >/dev/null; then
    lacks xfsprogs "its workspaces on disk have bounds on xfs alone"
  fi
  if ! command -v mmdebstrap >/dev/null || [[ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]]; then
    lacks "mmdebstrap debian-archive-keyring" "its sandboxes have an image that is made of Debian's packages"
  fi
fi
if [[ $all && $(uname -s) == Linux ]] && ! command -v podman >/dev/null; then
  lacks podman "the provider docker is tested with Podman, too"
fi
if [[ $target == test && $(uname -s) == Linux ]] && ! PATH=$PATH:/usr/sbin:/sbin command -v ip >/dev/null; then
  lacks iproute2 "a cluster is tested in networks that break"
fi
if [[ $target == check ]] && ! command -v shellcheck >/dev/null; then
  lacks shellcheck "the scripts are checked too"
fi

install() {
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    for reason in "${reasons[@]}"; do say "missing: $reason"; done
    say "going on with what can run; to run everything: sudo apt-get install ${packages[*]}"
    return
  fi
  mkdir -p "$root/.cache"
  local log=$root/.cache/setup.log
  say "installing ${packages[*]} (apt-get, log in .cache/setup.log)"
  export DEBIAN_FRONTEND=noninteractive
  local wait_for_lock=(-o DPkg::Lock::Timeout=300)
  # Tests start engines of their own: an installed one must not start as well.
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
  fi
  if ! { apt-get "${wait_for_lock[@]}" update -q &&
    apt-get "${wait_for_lock[@]}" install -q -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "could not install them; going on with what can run"
  fi
}

# Interpreters are tested with several versions of Node; a host has one.
fetch_node() { # fetch_node MAJOR
  local to=$root/.cache/node/$1 new log=$root/.cache/node-$1.log machine
  [[ ! -x $to/bin/node ]] || return 0
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) machine=x64 ;;
    Linux-aarch64) machine=arm64 ;;
    *) return 0 ;;
  esac
  if ! command -v npm >/dev/null; then
    say "missing: npm, to fetch Node $1, which interpreters are tested with too; going on with what can run"
    return
  fi
  say "fetching Node $1 (npm, log in .cache/node-$1.log)"
  mkdir -p "$root/.cache/node"
  new=$(mktemp -d "$root/.cache/node/new.XXXXXX")
  # Only the program is kept, and it is in its place at once or not at all.
  if ! { npm install --prefix "$new" --ignore-scripts --no-save --no-package-lock --no-audit --no-fund --fetch-retries=4 "node-linux-$machine@$1" &&
    "$new/node_modules/node-linux-$machine/bin/node" --version &&
    mkdir -p "$to/bin" &&
    mv "$new/node_modules/node-linux-$machine/bin/node" "$to/bin/node"; } >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "could not fetch Node $1; going on with what can run"
  fi
  rm -rf "$new"
}

# new_enough tells whether the machine's own Node runs the clients of others: the
# conformance tool of MCP needs Node 22.
new_enough() {
  local node
  node=$(command -v node) && "$node" -e 'process.exit(parseInt(process.versions.node) >= 22 ? 0 : 1)'
}

((${#packages[@]} == 0)) || install
if [[ $all ]]; then
  fetch_node 22 &
  fetch_node 24 &
  wait
elif [[ $target == test ]] && ! new_enough; then
  fetch_node 22
fi
