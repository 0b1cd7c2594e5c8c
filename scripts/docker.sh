#!/usr/bin/env bash
# A Docker daemon of its own for tests, on a machine that needs to have none:
# everything it keeps is below DIR, its mounts are in a namespace of their own, its
# control groups have one parent, and it has no bridge and no firewall rules.
#
# usage: docker.sh start DIR          starts it and prints its address
#        docker.sh stop DIR           ends it and removes DIR; fails if anything is left
#        docker.sh image [ADDRESS]    puts the sandbox image of tests into an engine
#   COVE_TEST_RUNSC=FILE  gives the daemon the runtime runsc, too
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/engine-lib.sh
source "$here/engine-lib.sh"

usage() {
  sed -n '/^# usage/,/^set/{/^set/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

# daemon DIR runs in the namespace: what is written to /run and /etc/docker, which
# no flag of dockerd moves, is written below DIR.
daemon() {
  local dir=$1
  mkdir -p "$dir/run" "$dir/etc"
  mount --bind "$dir/run" /run
  [[ ! -d /etc/docker ]] || mount --bind "$dir/etc" /etc/docker
  exec dockerd --config-file "$dir/daemon.json" --host "unix://$dir/docker.sock" --pidfile "$dir/docker.pid" \
    --data-root "$dir/data" --exec-root "$dir/exec" --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$(engine_group "$dir")" \
    --bridge none --iptables=false --ip6tables=false --ip-masq=false --shutdown-timeout 5
}

start() {
  local dir=$1 host=unix://$1/docker.sock
  if ((${#dir} > 70)); then
    echo "docker.sh: $dir is too long for the sockets below it; choose a directory with a shorter name" >&2
    exit 1
  fi
  if [[ $dir == /run/* ]]; then
    echo "docker.sh: $dir would be covered; choose a directory outside of /run" >&2
    exit 1
  fi
  engine_begin "$dir"
  # Left by one that was killed; the next would wait for what has this number now.
  rm -f "$dir/docker.pid" "$dir/exec/containerd/containerd.pid" "$dir/docker.sock"
  echo '{}' >"$dir/daemon.json"
  if [[ -n ${COVE_TEST_RUNSC:-} ]]; then
    ln -sfn "$(realpath "$COVE_TEST_RUNSC")" "$dir/runsc"
    printf '{"runtimes": {"runsc": {"path": "%s/runsc", "runtimeArgs": ["--platform=systrap", "--overlay2=none"]}}}\n' "$dir" >"$dir/daemon.json"
  fi
  engine_spawn "$dir" "$here/docker.sh" daemon "$dir"
  engine_await "$dir" docker --host "$host" version
  echo "$host"
}

stop() { engine_end "$1"; }

image() {
  local host=${1:-${DOCKER_HOST:-unix:///var/run/docker.sock}} archive log=$here/../.cache/image-build.log
  if [[ $(id -u) == 0 ]] && command -v mmdebstrap >/dev/null; then
    archive=$("$here/image.sh")
    docker --host "$host" import "$archive" cove-base:test >/dev/null
  else
    # An engine that others look after has a registry.
    printf '%s\n' 'FROM debian:trixie-slim' 'RUN apt-get update && apt-get install --yes --no-install-recommends curl procps' |
      docker --host "$host" build --tag cove-base:test - >"$log" 2>&1 || { tail -n 5 "$log" >&2 && exit 1; }
  fi
  if ! DOCKER_BUILDKIT=0 docker --host "$host" build --build-arg BASE=cove-base:test --tag cove-sandbox:test "$here/../images/sandbox" >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    echo "docker.sh: images/sandbox could not be built" >&2
    exit 1
  fi
  # The name that is asked for when no other was set, unless somebody has it already.
  if ! docker --host "$host" image inspect cove-sandbox:latest >/dev/null 2>&1; then
    docker --host "$host" tag cove-sandbox:test cove-sandbox:latest
  fi
}

case ${1:-} in
  start | stop | daemon)
    (($# == 2)) || usage
    "$1" "$(realpath --canonicalize-missing "$2")"
    ;;
  image) image "${2:-}" ;;
  *) usage ;;
esac
