# shellcheck shell=bash
# Sourced by test.sh and others: the engines that providers are tested on. Each is
# started where it can be, and is named in a variable where it was:
#
#   COVE_TEST_DOCKER_HOST  a Docker daemon that has the image cove-sandbox:test
#   COVE_TEST_PODMAN_HOST  Podman's Docker-compatible socket, likewise
#   COVE_TEST_RUNSC        the executable of gVisor, as make build embeds it
#   COVE_TEST_AGENT        the agent of sandboxes, static and lean
#   COVE_TEST_COVE         cove itself, without what make build embeds
#   COVE_TEST_DUCKDB       the executable of DuckDB, as make build embeds it
#   COVE_TEST_S3           the executable of an S3 server, as scripts/s3.sh builds it
#   COVE_TEST_SDKS         the clients that others wrote, as scripts/sdks.sh installs them
#   COVE_TEST_CONSOLE      the web console and its tests, as scripts/web.sh --test builds them
#   COVE_TEST_CHROMIUM     a browser for them
#   COVE_TEST_TYPESCRIPT   the SDK in sdk/typescript, as scripts/typescript.sh builds it
#
# The path of each program that is built here contains a digest of it or of its
# sources. Tests read the variable, and go test remembers its value: a test that only
# executes a program runs again when the program has changed.
#
# What is set already is taken as it is. A Docker daemon that answers on this
# machine, or at DOCKER_HOST, is used and no second one is started beside it.

engines_say() { printf 'engines: %s\n' "$*" >&2; }

engines_required() { # engines_required NAME
  [[ ,${COVE_REQUIRE:-}, == *,$1,* ]]
}

# engines_failed NAME WHY: what must be there ends the run, what may be missing is said.
engines_failed() {
  engines_say "$1: $2"
  if engines_required "$1"; then
    engines_say "COVE_REQUIRE names $1: not going on without it"
    return 1
  fi
}

# engines_program VARIABLE NAME BUILD-ARGUMENTS… builds one of our own programs and names it.
engines_program() {
  local variable=$1 name=$2 new digest
  shift 2
  [[ -z ${!variable:-} ]] || return 0
  mkdir -p .cache/programs
  new=$(mktemp -d .cache/programs/new.XXXXXX)
  if ! CGO_ENABLED=0 go build -trimpath -buildvcs=false "$@" -o "$new/$name" "./cmd/$name"; then
    rm -rf "$new"
    return 1
  fi
  digest=$(sha256sum "$new/$name" | cut -c1-16)
  mkdir -p ".cache/programs/$digest"
  touch ".cache/programs/$digest" # it is in use; those that are not are removed below
  # One that is there stays: its time is a part of what go test remembers.
  [[ -x .cache/programs/$digest/$name ]] || mv "$new/$name" ".cache/programs/$digest/$name"
  rm -rf "$new"
  find .cache/programs -mindepth 1 -maxdepth 1 -mtime +0 ! -name "$digest" -exec rm -rf {} +
  export "$variable=$PWD/.cache/programs/$digest/$name"
}

engines_agent() { engines_program COVE_TEST_AGENT cove-agent -ldflags '-s -w'; }

engines_cove() { engines_program COVE_TEST_COVE cove; }

# engines_built VARIABLE NAME SCRIPT… runs a script that prints the path of what it built,
# and names that.
engines_built() {
  local variable=$1 name=$2 path log
  shift 2
  [[ -z ${!variable:-} ]] || return 0
  mkdir -p .cache
  log=.cache/$(basename "$1" .sh).log
  engines_say "$1, log in $log"
  if ! path=$("$@" 2>"$log"); then
    engines_failed "$name" "$(tail -n 1 "$log")"
    return
  fi
  export "$variable=$path"
}

engines_gvisor() { engines_built COVE_TEST_RUNSC gvisor scripts/gvisor.sh; }

engines_duckdb() { engines_built COVE_TEST_DUCKDB duckdb scripts/duckdb.sh; }

engines_s3() { engines_built COVE_TEST_S3 s3 scripts/s3.sh; }

engines_sdks() { engines_built COVE_TEST_SDKS sdks scripts/sdks.sh; }

engines_typescript() { engines_built COVE_TEST_TYPESCRIPT sdks scripts/typescript.sh; }

engines_console() {
  local path
  if [[ -z ${COVE_TEST_CHROMIUM:-} ]]; then
    if ! path=$(command -v chromium || command -v chromium-browser || command -v google-chrome); then
      engines_failed console "there is no browser (Debian: chromium)"
    else
      export COVE_TEST_CHROMIUM=$path
    fi
  fi
  engines_built COVE_TEST_CONSOLE console scripts/web.sh --test
}

engines_docker() {
  local host
  [[ -z ${COVE_TEST_DOCKER_HOST:-} ]] || return 0
  if ! command -v docker >/dev/null; then
    engines_failed docker "not installed (docker.io)"
    return
  fi
  if timeout 5 docker version >/dev/null 2>&1; then
    host=${DOCKER_HOST:-unix:///var/run/docker.sock}
  elif [[ $(id -u) != 0 ]] || ! command -v dockerd >/dev/null; then
    engines_failed docker "no daemon answers, and only root can start one (docker.io)"
    return
  elif ! host=$(scripts/docker.sh start "$engines_dir/docker"); then
    engines_failed docker "its daemon did not start"
    return
  fi
  scripts/docker.sh image "$host" &
  engines_image=$!
  export COVE_TEST_DOCKER_HOST=$host
}

# engines_ready waits until the engines that were started can be used.
engines_ready() {
  if [[ ${engines_image:-} ]] && ! wait "$engines_image"; then
    unset COVE_TEST_DOCKER_HOST
    engines_failed docker "the sandbox image could not be made"
  fi
}

engines_podman() {
  local host
  [[ -z ${COVE_TEST_PODMAN_HOST:-} ]] || return 0
  if [[ $(id -u) != 0 ]] || ! command -v podman >/dev/null || ! command -v docker >/dev/null; then
    engines_failed podman "not installed, or not root"
    return
  fi
  if ! host=$(scripts/podman.sh start "$engines_dir/podman"); then
    engines_failed podman "its service did not start"
    return
  fi
  if ! scripts/podman.sh image "$host"; then
    engines_failed podman "the sandbox image could not be made"
    return
  fi
  export COVE_TEST_PODMAN_HOST=$host
}

# engines_tests PACKAGES… lists the folders of packages for engines_asked.
engines_tests() { mapfile -t engines_folders < <(go list -e -f '{{.Dir}}' "$@" 2>/dev/null); }

# engines_asked PATTERN tells whether a test of these packages has the pattern.
engines_asked() {
  ((${#engines_folders[@]})) || return
  [[ -n $(find "${engines_folders[@]}" -maxdepth 1 -name '*_test.go' -exec grep -lE "$1" {} +) ]]
}

# engines_start starts what can be started, or only what is named; engines_ready waits for
# it. It must be called in the shell that ends with the run, in the root of the tree.
engines_start() {
  local part
  engines_sweep
  mkdir -p .cache
  # Not in the tree, whose path may be too long for their sockets. The name is the same in
  # each run of a tree, unless two run at once: go test remembers it.
  engines_dir=/var/tmp/cove-engines.$(printf '%s' "$PWD" | sha256sum | cut -c1-6)
  (umask 077 && mkdir "$engines_dir" 2>/dev/null) || engines_dir=$(mktemp -d /var/tmp/cove-engines.XXXXXX)
  echo $$ >"$engines_dir/owner"
  trap engines_ended EXIT
  # Also when this shell is killed.
  # shellcheck disable=SC2016 # the other shell expands them
  setsid bash -c 'tail --pid="$1" -f /dev/null; cd "$2" && source scripts/engines.sh && engines_sweep' guard $$ "$PWD" >/dev/null 2>&1 </dev/null &
  engines_guard=$!
  # It is waited for where it is needed; meanwhile others compile.
  if [[ $(id -u) == 0 ]] && command -v dockerd >/dev/null && command -v mmdebstrap >/dev/null; then
    scripts/image.sh >/dev/null 2>&1 </dev/null &
  fi
  (($#)) || set -- engines_agent engines_gvisor engines_docker engines_podman
  for part in "$@"; do "$part"; done
  engines_versions >.cache/engines.txt
}

# engines_versions prints what runs, a line for each engine.
engines_versions() {
  local server="{{.Server.Version}}"
  echo "local=$(uname -sr)"
  if [[ ${COVE_TEST_RUNSC:-} ]]; then
    echo "gvisor=$(go list -C cmd/cove-gvisor -m -f '{{.Version}}' gvisor.dev/gvisor 2>/dev/null || true)"
  fi
  if [[ ${COVE_TEST_DOCKER_HOST:-} ]]; then
    echo "docker=$(docker --host "$COVE_TEST_DOCKER_HOST" version --format "$server")"
  fi
  if [[ ${COVE_TEST_PODMAN_HOST:-} ]]; then
    echo "podman=$(docker --host "$COVE_TEST_PODMAN_HOST" version --format "$server")"
  fi
}

# engines_stop ends what engines_start started, and fails if anything is left.
engines_stop() {
  local failed=0
  [[ -n ${engines_dir:-} ]] || return 0
  engines_remove "$engines_dir" || failed=1
  kill -- "-$engines_guard" 2>/dev/null || true
  engines_dir=
  return "$failed"
}

engines_ended() {
  local status=$?
  trap - EXIT
  engines_stop || status=1
  exit "$status"
}

engines_remove() { # engines_remove DIR
  local failed=0
  scripts/docker.sh stop "$1/docker" || failed=1
  scripts/podman.sh stop "$1/podman" || failed=1
  ((failed)) || rm -rf "$1"
  return "$failed"
}

# engines_sweep ends the engines of runs that were killed.
engines_sweep() {
  local dir owner
  for dir in /var/tmp/cove-engines.*/; do
    [[ -O $dir ]] || continue
    owner=$(cat "$dir/owner" 2>/dev/null) || continue
    if [[ $owner ]] && ! kill -0 "$owner" 2>/dev/null; then
      engines_remove "${dir%/}" || engines_say "what an earlier run left in ${dir%/} could not be removed"
    fi
  done
}
