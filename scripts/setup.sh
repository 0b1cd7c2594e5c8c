#!/usr/bin/env bash
# Finds what a target needs beside Go. As root on Debian or Ubuntu it installs
# what is missing; anybody else is told the packages, and goes on with what can
# run. It prints nothing and takes no time when nothing is missing.
#
# usage: setup.sh build|test|check|bench
set -euo pipefail

target=${1:-build}
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
if [[ $target != build && $target != bench ]] && ! { command -v "${CC:-gcc}" >/dev/null && [[ -e /usr/include/stdlib.h ]]; }; then
  lacks "gcc libc6-dev" "the race detector needs a C compiler"
fi
if [[ $target == bench || $target == test ]] && ! command -v bwrap >/dev/null; then
  lacks bubblewrap "the benchmark compares with it, and is tested"
fi
if [[ $target == test && $(uname -m) != aarch64 ]] && ! command -v qemu-aarch64 qemu-aarch64-static >/dev/null; then
  lacks qemu-user "the agent for arm64 is tested under an emulator"
fi
if [[ $target == bench || $target == test ]] && ! command -v curl >/dev/null; then
  lacks curl "the documentation shows the HTTP API with it, and sandboxes fetch with it"
fi
if [[ $target == test && ! -x /usr/bin/python3 ]]; then
  lacks python3 "programs in sandboxes are tested with it"
fi
if [[ $target == test ]] && ! PATH=$PATH:/usr/sbin:/sbin command -v mkfs.ext4 >/dev/null; then
  lacks e2fsprogs "workspaces on disk are file systems of their own"
fi
if [[ $target == check ]] && ! command -v shellcheck >/dev/null; then
  lacks shellcheck "the scripts are checked too"
fi

((${#packages[@]})) || exit 0

if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  for reason in "${reasons[@]}"; do say "missing: $reason"; done
  say "going on with what can run; to run everything: sudo apt-get install ${packages[*]}"
  exit 0
fi

mkdir -p "$root/.cache"
log=$root/.cache/setup.log
say "installing ${packages[*]} (apt-get, log in .cache/setup.log)"
export DEBIAN_FRONTEND=noninteractive
wait_for_lock=(-o DPkg::Lock::Timeout=300)
if ! { apt-get "${wait_for_lock[@]}" update -q &&
  apt-get "${wait_for_lock[@]}" install -q -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
  tail -n 5 "$log" >&2
  say "could not install them; going on with what can run"
fi
