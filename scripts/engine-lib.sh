# shellcheck shell=bash
# What docker.sh and podman.sh have in common: how an engine of tests is started
# in a place of its own, and how nothing of it is left.

# The engine's control groups are below this name, in every hierarchy.
engine_group() { printf 'cove-engine-%s' "$(printf '%s' "$1" | sha256sum | cut -c1-8)"; }

engine_begin() {
  local dir=$1
  if [[ $(id -u) != 0 ]]; then
    echo "${0##*/}: only root can start an engine" >&2
    exit 1
  fi
  if [[ -n $(engine_processes "$dir") ]]; then
    echo "${0##*/}: an engine runs in $dir already" >&2
    exit 1
  fi
  (umask 077 && mkdir -p "$dir")
  touch "$dir/cove-engine" # engine_end removes no directory without it
}

# engine_spawn DIR COMMAND… starts it in a namespace of mounts, which others reach
# into and which reaches nobody, and without our terminal and descriptors.
engine_spawn() {
  local dir=$1
  shift
  setsid unshare --mount --propagation slave "$@" >"$dir/log" 2>&1 </dev/null &
}

# engine_await DIR COMMAND… waits until the command succeeds.
engine_await() {
  local dir=$1 spawned=$! until=$((SECONDS + 60))
  shift
  until timeout 5 "$@" >/dev/null 2>&1; do
    if ! kill -0 "$spawned" 2>/dev/null || ((SECONDS > until)); then
      tail -n 20 "$dir/log" >&2
      echo "${0##*/}: the engine did not start; its log is above" >&2
      (engine_end "$dir") || true
      exit 1
    fi
    sleep 0.1
  done
}

# engine_processes DIR prints the engine's own processes and those in its groups.
engine_processes() {
  local dir=$1 entry comm args
  for entry in /proc/[0-9]*; do
    { read -r comm <"$entry/comm"; } 2>/dev/null || continue
    case $comm in
      dockerd | containerd | containerd-shim* | docker-init | docker-proxy | runc* | conmon | podman | catatonit) ;;
      *) continue ;;
    esac
    { mapfile -d '' args <"$entry/cmdline"; } 2>/dev/null || continue
    if [[ " ${args[*]} " == *"$dir/"* ]]; then echo "${entry#/proc/}"; fi
  done
  engine_groups "$dir" | while read -r entry; do
    cat "$entry/cgroup.procs" 2>/dev/null || true
  done
}

# engine_groups DIR prints the engine's control groups, the inner ones first. Podman
# names them itself, by its containers.
engine_groups() {
  local dir=$1 names=(-path "*/$(engine_group "$1")*") container
  for container in "$dir"/data/overlay-containers/*/; do
    [[ ! -d $container ]] || names+=(-o -path "*/libpod-$(basename "$container")*")
  done
  find /sys/fs/cgroup -depth -type d \( "${names[@]}" \) 2>/dev/null || true
}

# engine_shared prints the control groups that every Podman of the machine shares,
# unless there is another.
engine_shared() {
  local entry comm args
  for entry in /proc/[0-9]*; do
    { read -r comm <"$entry/comm"; } 2>/dev/null || continue
    [[ $comm == podman || $comm == conmon ]] || continue
    # What has ended and was not waited for has no command line.
    { mapfile -d '' args <"$entry/cmdline"; } 2>/dev/null || continue
    ((${#args[@]} == 0)) || return 0
  done
  find /sys/fs/cgroup -depth -type d \( -path '*/libpod_parent' -o -path '*/libpod_parent/conmon' \) 2>/dev/null || true
}

engine_mounts() {
  awk -v dir="$1/" '{ if (index($5 "/", dir) == 1) print $5 }' /proc/self/mountinfo | sort -r
}

# engine_kill DIR ends everything at once. Nothing of it is used again, and asked to
# end an engine waits for each of its containers.
engine_kill() {
  local dir=$1 pids tries=100
  while pids=$(engine_processes "$dir" | sort -un) && [[ $pids ]]; do
    # shellcheck disable=SC2086 # a list of numbers is meant to split
    kill -s KILL $pids 2>/dev/null || true
    ((tries-- > 0)) || return 0 # engine_end says what is left
    sleep 0.1
  done
}

# engine_end DIR ends what runs, removes what is kept and says what it could not.
engine_end() {
  local dir=$1 groups path left
  if [[ ! -e $dir/cove-engine ]]; then
    [[ ! -e $dir ]] || { echo "${0##*/}: $dir is not a directory of an engine of ours" >&2 && exit 1; }
    return 0
  fi
  engine_kill "$dir"
  engine_mounts "$dir" | while read -r path; do umount --lazy "$path" || true; done
  groups=$(engine_groups "$dir")
  while read -r path; do rmdir "$path" 2>/dev/null || true; done <<<"$groups"
  engine_shared | while read -r path; do rmdir "$path" 2>/dev/null || true; done
  rm -rf --one-file-system "$dir" || true
  left=$(
    engine_processes "$dir" | sed 's/^/process /'
    engine_mounts "$dir" | sed 's/^/mount /'
    { printf '%s\n' "$groups" && engine_shared; } | while read -r path; do
      [[ -z $path || ! -e $path ]] || echo "control group $path"
    done
    [[ ! -e $dir ]] || echo "directory $dir"
  )
  if [[ $left ]]; then
    printf '%s\n' "${0##*/}: the engine left something behind:" "$left" >&2
    exit 1
  fi
}
