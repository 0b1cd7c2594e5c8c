#!/usr/bin/env bash
# Podman behind its Docker-compatible socket, for tests: everything it keeps is
# below DIR, and its mounts are in a namespace of their own.
#
# usage: podman.sh start DIR          starts the service and prints its address
#        podman.sh stop DIR           ends it and removes DIR; fails if anything is left
#        podman.sh image ADDRESS      puts the sandbox image of tests into it
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/engine-lib.sh
source "$here/engine-lib.sh"

usage() {
  sed -n '/^# usage/,/^set/{/^set/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

settings() {
  local dir=$1
  # runc, because crun does not know machines with control groups of both versions.
  cat >"$dir/containers.conf" <<END
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "$dir/run/libpod"
static_dir = "$dir/data/libpod"
volume_path = "$dir/data/volumes"
network_cmd_path = ""
[containers]
pids_limit = 0
default_ulimits = []
END
  cat >"$dir/storage.conf" <<END
[storage]
driver = "overlay"
graphroot = "$dir/data"
runroot = "$dir/run/containers"
END
}

# daemon DIR runs in the namespace: what is written to /run and /var/lib/containers,
# which no setting moves, is written below DIR.
daemon() {
  local dir=$1
  mkdir -p "$dir/run" "$dir/lib"
  mount --bind "$dir/run" /run
  mount --bind "$dir/lib" /var/lib
  export CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf HOME=$dir TMPDIR=$dir
  cd "$dir" # conmon makes a file "oom" in the working directory
  exec podman --cgroup-manager cgroupfs system service --time 0 "unix://$dir/podman.sock"
}

start() {
  local dir=$1 host=unix://$1/podman.sock
  if ((${#dir} > 70)); then
    echo "podman.sh: $dir is too long for the sockets below it; choose a directory with a shorter name" >&2
    exit 1
  fi
  if [[ $dir == /var/lib/* || $dir == /run/* ]]; then
    echo "podman.sh: $dir would be covered; choose a directory outside of /var/lib and /run" >&2
    exit 1
  fi
  engine_begin "$dir"
  rm -f "$dir/podman.sock"
  settings "$dir"
  engine_spawn "$dir" "$here/podman.sh" daemon "$dir"
  engine_await "$dir" docker --host "$host" version
  echo "$host"
}

stop() { engine_end "$1"; }

image() {
  local archive
  archive=$("$here/image.sh")
  # Built by Docker it has a user of that name, too; what counts is the number.
  docker --host "$1" import --change 'USER 1000' --change 'WORKDIR /workspace' --change 'CMD ["bash"]' "$archive" cove-sandbox:test >/dev/null
  docker --host "$1" tag cove-sandbox:test cove-sandbox:latest
  rm -f "$(dirname "${1#unix://}")"/api_load.tar* # Podman forgets its copies
}

case ${1:-} in
  start | stop | daemon)
    (($# == 2)) || usage
    "$1" "$(realpath --canonicalize-missing "$2")"
    ;;
  image)
    (($# == 2)) || usage
    image "$2"
    ;;
  *) usage ;;
esac
