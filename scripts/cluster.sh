#!/usr/bin/env bash
# A cluster on this machine: a Redis, three nodes, and one address in front of them,
# all on loopback. Everything it keeps is below DIR: settings, secrets, logs, the
# homes of the nodes. docs/cluster.md says what can be tried with it.
#
# usage: cluster.sh up DIR       starts what does not run, and prints the address and the key file
#        cluster.sh status DIR   says what runs; fails if something does not
#        cluster.sh down DIR     ends it and removes DIR; fails if anything is left
#   COVE_ADDR=127.0.0.1:8000  is the one address, a free one unless it is set
#   COVE_…, SANDBOX_…         settings of the nodes, as docs/configuration.md has them
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=$PATH:/usr/sbin:/sbin # haproxy is there, and not every user looks there
nodes=(n1 n2 n3)
patience=60 # seconds for something to start, and to end
redis_port='' redis_password='' cluster_secret='' n1_addr='' n2_addr='' n3_addr='' front_addr='' # as DIR/settings has them

usage() {
  sed -n '/^# usage/,/^set/{/^set/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
  exit 2
}

fail() {
  printf 'cluster.sh: %s\n' "$*" >&2
  exit 1
}

need() {
  local program
  for program in redis-server redis-cli haproxy curl; do
    command -v "$program" >/dev/null || fail "$program is not installed; on Debian and Ubuntu: apt-get install redis-server haproxy curl"
  done
  [[ -x $root/bin/cove ]] || fail "$root/bin/cove is not there; run make build"
}

# born PID prints when a process began, unless it has ended. The number alone may be
# somebody else's by now.
born() {
  local stat fields threads
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  read -ra fields <<<"${stat##*) }" # the name before it may hold anything
  threads=("/proc/$1/task/"*)       # which can go on after the first one has ended
  [[ ${fields[0]} != [ZX] ]] || ((${#threads[@]} > 1)) || return 1
  echo "${fields[19]}"
}

# runs DIR NAME prints the number of a process of ours, if it runs.
runs() {
  local pid began
  { read -r pid began <"$1/$2.pid"; } 2>/dev/null || return 1
  [[ $(born "$pid") == "$began" ]] || return 1
  echo "$pid"
}

# spawn DIR NAME COMMAND… starts a process without our terminal and descriptors.
spawn() {
  local dir=$1 name=$2 pid
  shift 2
  setsid "$@" >>"$dir/$name.log" 2>&1 </dev/null &
  pid=$!
  echo "$pid $(born "$pid")" >"$dir/$name.pid"
}

# await DIR NAME COMMAND… waits until the command succeeds.
await() {
  local dir=$1 name=$2 until=$((SECONDS + patience))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ! runs "$dir" "$name" >/dev/null || ((SECONDS > until)); then
      tail -n 20 "$dir/$name.log" >&2
      fail "$name did not start; the end of $dir/$name.log is above"
    fi
    sleep 0.1
  done
}

# free_port prints a port that nobody listens on, below those that the kernel gives
# to connections.
free_port() {
  local port
  while :; do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if [[ " ${taken[*]:-} " != *" $port "* ]] && ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      taken+=("$port")
      return
    fi
  done
}

random() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }

# settle writes down, once, what all parts of a cluster must agree on.
settle() {
  local dir=$1 taken=() name
  [[ ! -e $dir/settings ]] || return 0
  {
    free_port
    echo "redis_port=${taken[-1]}"
    echo "redis_password=$(random)"
    echo "cluster_secret=$(random)"
    for name in "${nodes[@]}"; do
      free_port
      echo "${name}_addr=127.0.0.1:${taken[-1]}"
    done
    free_port
    printf 'front_addr=%q\n' "${COVE_ADDR:-127.0.0.1:${taken[-1]}}"
  } >"$dir/settings.new"
  mv "$dir/settings.new" "$dir/settings" # whole, or not at all
}

up_redis() {
  local dir=$1
  mkdir -p "$dir/redis"
  cat >"$dir/redis.conf" <<END
bind 127.0.0.1
port $redis_port
requirepass $redis_password
dir "$dir/redis"
daemonize no
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
END
  runs "$dir" redis >/dev/null || spawn "$dir" redis redis-server "$dir/redis.conf"
  await "$dir" redis ping_redis
}

ping_redis() { [[ $(REDISCLI_AUTH=$redis_password redis-cli -h 127.0.0.1 -p "$redis_port" ping) == PONG ]]; }

up_node() {
  local dir=$1 name=$2 addr
  addr=${name}_addr
  ! runs "$dir" "$name" >/dev/null || return 0
  (umask 077 && mkdir -p "$dir/$name" "$dir/archives")
  # A proxy is one remote address for all who come through it.
  COVE_HOME=$dir/$name COVE_ADDR=${!addr} COVE_PUBLIC_URL=${COVE_PUBLIC_URL:-http://$front_addr} COVE_NODE_ID=$name COVE_NODE_ADDR=127.0.0.1:0 \
    REDIS_URL=redis://:$redis_password@127.0.0.1:$redis_port COVE_CLUSTER_SECRET=$cluster_secret \
    COVE_ARCHIVE_URL=${COVE_ARCHIVE_URL:-file://$dir/archives} COVE_CONNECTIONS_PER_REMOTE=${COVE_CONNECTIONS_PER_REMOTE:-8192} \
    spawn "$dir" "$name" "$root/bin/cove" serve
}

up_front() {
  local dir=$1
  runs "$dir" front >/dev/null || COVE_FRONT=$front_addr COVE_NODE_1=$n1_addr COVE_NODE_2=$n2_addr COVE_NODE_3=$n3_addr \
    spawn "$dir" front haproxy -db -f "$root/deploy/haproxy.cfg"
  await "$dir" front ready "$front_addr"
}

ready() { curl -fsS --noproxy '*' --max-time 5 "http://$1/ready"; }

up() {
  local dir=$1 name addr
  need
  [[ ! -e $dir || -e $dir/cove-cluster || -z $(ls -A "$dir") ]] || fail "$dir is there and is not a cluster's; choose another directory"
  (umask 077 && mkdir -p "$dir")
  chmod 0700 "$dir"
  touch "$dir/cove-cluster" # down removes no directory without it
  unset REDIS_HOST REDIS_PORT COVE_URL COVE_API_KEY
  (umask 077 && settle "$dir")
  # shellcheck source=/dev/null
  source "$dir/settings"
  (umask 077 && up_redis "$dir")
  for name in "${nodes[@]}"; do up_node "$dir" "$name"; done
  for name in "${nodes[@]}"; do
    addr=${name}_addr
    await "$dir" "$name" ready "${!addr}"
  done
  up_front "$dir"
  cat <<END
address   http://$front_addr
key file  $dir/n1/admin.key
logs      $dir/*.log
use it    export COVE_URL=http://$front_addr COVE_API_KEY=\$(cat $dir/n1/admin.key); $root/bin/cove node ls
end it    $root/scripts/cluster.sh down $dir
END
}

status() {
  local dir=$1 name addr pid said missing=0
  [[ -e $dir/settings ]] || fail "there is no cluster in $dir"
  # shellcheck source=/dev/null
  source "$dir/settings"
  for name in redis "${nodes[@]}" front; do
    addr=${name}_addr said=
    [[ $name != redis ]] || addr=127.0.0.1:$redis_port
    [[ $name == redis ]] || addr=${!addr}
    if ! pid=$(runs "$dir" "$name"); then
      said="does not run" missing=1
    elif [[ $name == redis ]] && ! ping_redis >/dev/null 2>&1 || [[ $name != redis ]] && ! ready "$addr" >/dev/null 2>&1; then
      said="runs ($pid) and is not ready" missing=1
    else
      said="runs ($pid)"
    fi
    printf '%-6s %-22s %s\n' "$name" "$addr" "$said"
  done
  return "$missing"
}

# finish DIR NAME ends a process of ours, and waits for that.
finish() {
  local dir=$1 name=$2 pid signal=TERM until=$((SECONDS + patience))
  while pid=$(runs "$dir" "$name"); do
    if [[ $signal ]]; then kill -s "$signal" "$pid" 2>/dev/null || true; fi
    signal=
    if ((SECONDS > until)); then signal=KILL; fi
    sleep 0.1
  done
}

# keepers DIR prints the processes that hold the nodes' sandboxes, which outlive a
# node and are not asked by signals.
keepers() {
  local entry args
  for entry in /proc/[0-9]*; do
    { mapfile -d '' args <"$entry/cmdline"; } 2>/dev/null || continue
    if [[ ${args[0]:-} == cove-keeper* && "${args[*]}" == *"$1/"* ]]; then echo "${entry#/proc/}"; fi
  done
}

# groups DIR prints the control groups of the nodes' sandboxes, the inner ones first.
groups() {
  local name home
  for name in "${nodes[@]}"; do
    home=$1/$name/providers
    find /sys/fs/cgroup -depth -type d \( -path "*/cove-$(printf '%s' "$home/local" | sha256sum | cut -c1-12)*" \
      -o -path "*/cove-all-$(printf '%s' "$home" | sha256sum | cut -c1-12)*" \) 2>/dev/null || true
  done
}

down() {
  local dir=$1 name pids path left tries=100
  if [[ ! -e $dir/cove-cluster ]]; then
    [[ ! -e $dir ]] || fail "$dir is not a cluster's"
    return 0
  fi
  finish "$dir" front
  for name in "${nodes[@]}"; do (finish "$dir" "$name") & done
  wait
  finish "$dir" redis
  # Sandboxes end with who holds them.
  while pids=$(keepers "$dir") && [[ $pids ]] && ((tries-- > 0)); do
    # shellcheck disable=SC2086 # a list of numbers is meant to split
    kill -s KILL $pids 2>/dev/null || true
    sleep 0.1
  done
  for ((tries = 100; tries > 0; tries--)); do
    groups "$dir" | while read -r path; do rmdir "$path" 2>/dev/null || true; done
    [[ -n $(groups "$dir") ]] || break
    sleep 0.1
  done
  rm -rf --one-file-system "$dir" || true
  left=$(
    keepers "$dir" | sed 's/^/process /'
    groups "$dir" | sed 's/^/control group /'
    [[ ! -e $dir ]] || echo "directory $dir"
  )
  [[ -z $left ]] || fail "the cluster left something behind:"$'\n'"$left"
}

case ${1:-} in
  up | status | down)
    (($# == 2)) || usage
    "$1" "$(realpath --canonicalize-missing "$2")"
    ;;
  *) usage ;;
esac
