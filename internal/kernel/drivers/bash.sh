# shellcheck shell=bash disable=SC2034,SC2064,SC2317
# Runs bash code that a host sends, and says how it ended. See ../doc.go.
#
# Code runs at the top level of this shell, so that all it declares stays. A shell
# that comes to its end, by exit, by set -e or by an interrupt, hands all it knows to
# a new one in the same process. Names that begin with __cove belong to the driver.
# The loop that calls these functions is in bash.go: lines of code are counted from
# where it is, so it must be the first one.

# say writes a frame in one piece: bash writes what it prints at each newline, so
# there must be none in it.
__cove_say() { # KIND BODY DESCRIPTOR
  local LC_ALL=C
  { builtin printf '%s%s %d %d;%s' "$__cove_marker" "$1" "$__cove_seq" "${#2}" "$2" >&"$3"; } 2>/dev/null
}

__cove_list() { # TEXT… sets __cove_made
  local LC_ALL=C
  __cove_made=
  while (($# > 0)); do
    __cove_made+="${#1}:$1"
    shift
  done
}

__cove_unlist() { # LIST sets __cove_words
  local LC_ALL=C
  __cove_words=()
  while [[ -n $1 ]]; do
    set -- "${1#*:}" "${1%%:*}"
    __cove_words+=("${1:0:$2}")
    set -- "${1:$2}"
  done
}

# usage sets the ticks of CPU time of this process and of its children that have
# ended, kilobytes of memory and the process group.
__cove_usage() {
  local IFS=' '
  __cove_words=()
  { builtin read -r -a __cove_words </proc/self/stat; } 2>/dev/null
  __cove_ticks=$((${__cove_words[13]:-0} + ${__cove_words[14]:-0} + ${__cove_words[15]:-0} + ${__cove_words[16]:-0}))
  __cove_memory=$((${__cove_words[23]:-0} * 4))
  __cove_group=${__cove_words[4]:-$$}
}

# syntax says what is wrong with code that may not have been understood. It runs
# nothing of it. A mistake before it shows which line is counted as the first.
__cove_syntax() { # CODE sets __cove_made
  __cove_made=$(
    builtin trap - EXIT ERR DEBUG
    { builtin eval ')'; builtin eval 'builtin set -n'$'\n'"$1"; } 2>&1 >/dev/null
  )
  [[ $__cove_made =~ line\ ([0-9]+): ]] || return 1
  set -- "${__cove_made#*$'\n'*$'\n'}"$'\n' "${BASH_REMATCH[1]}"
  while [[ ${1%%$'\n'*} == *': warning: '* ]]; do set -- "${1#*$'\n'}" "$2"; done
  [[ $__cove_made == *$'\n'*$'\n'* && $1 =~ line\ ([0-9]+):\ ([^$'\n']*) ]] || return 1
  __cove_list SyntaxError "${BASH_REMATCH[2]:0:1000}" '' "$((BASH_REMATCH[1] - $2))"
}

__cove_report() {
  __cove_say M '' 252
  if [[ -n $__cove_stopped ]]; then
    __cove_list KeyboardInterrupt 'the code was interrupted; the variables are kept' '' 0
    __cove_say E "$__cove_made" 251
  elif ((__cove_code == 1 || __cove_code == 2)) && __cove_syntax "$__cove_text"; then
    __cove_say E "$__cove_made" 251
  fi
  set -- "$__cove_ticks"
  __cove_usage
  __cove_list "$__cove_code" "$(((__cove_ticks - $1) * 10000))" "$__cove_memory"
  __cove_say D "$__cove_made" 251
  __cove_runs='' __cove_stopped='' __cove_text=''
}

__cove_adopt() { # DIRECTORY [NAME VALUE]…
  if builtin cd -- "$1" 2>/dev/null; then __cove_list ''; else __cove_list 'it is no directory that can be entered'; fi
  shift
  while (($# > 1)); do
    builtin declare -gx "$1=$2" 2>/dev/null
    shift 2
  done
  __cove_say A "$__cove_made" 251
}

# lend sets variables for the next code alone, and keeps what they were.
__cove_lend() { # [NAME VALUE]…
  __cove_lent=()
  while (($# > 1)); do
    if [[ -v $1 ]]; then
      [[ ${!1@a} == *x* ]] && __cove_lent+=("$1" -x "${!1}") || __cove_lent+=("$1" +x "${!1}")
    else
      __cove_lent+=("$1" '' '')
    fi
    builtin declare -gx "$1=$2" 2>/dev/null
    shift 2
  done
}

# back gives them back what they were.
__cove_back() { # [NAME ATTRIBUTE VALUE]…
  __cove_lent=()
  while (($# > 2)); do
    if [[ -n $2 ]]; then builtin declare -g "$2" "$1=$3" 2>/dev/null; else builtin unset -v "$1" 2>/dev/null; fi
    shift 3
  done
}

# await reads what the next request is.
__cove_await() {
  { IFS=' ' builtin read -r __cove_kind __cove_seq __cove_length <&250; } 2>/dev/null && return
  __cove_list 'its input was closed'
  __cove_say L "$__cove_made" 251
  builtin trap - EXIT
  builtin exit 70
}

# turn says how the last code ended and waits for the next.
__cove_turn() {
  __cove_back "${__cove_lent[@]}"
  __cove_words=() __cove_env=()
  __cove_hear
  __cove_lend "${__cove_env[@]}"
  exec 0</dev/null 1>&251 2>&252
  builtin trap __cove_interrupt INT
}

__cove_hear() {
  local LC_ALL=C
  [[ -z $__cove_runs ]] || __cove_report
  while builtin :; do
    [[ -n $__cove_kind ]] || __cove_await
    IFS='' builtin read -r -N "$__cove_length" __cove_text <&250
    case $__cove_kind in
      I)
        __cove_unlist "$__cove_text"
        __cove_marker=${__cove_words[0]}
        __cove_usage
        __cove_list "$$" "$__cove_group" "${BASH_VERSION%%[^0-9.]*}"
        __cove_say H "$__cove_made" 251
        ;;
      A)
        __cove_unlist "$__cove_text"
        __cove_adopt "${__cove_words[@]}"
        ;;
      V)
        __cove_unlist "$__cove_text"
        __cove_env=("${__cove_words[@]}")
        ;;
      P) __cove_say P '' 251 ;;
      X) builtin break ;;
    esac
    __cove_kind=
  done
  __cove_runs=1 __cove_kind=''
}

# trap keeps what code wants to happen at an exit and at an interrupt; those traps are
# the driver's.
trap() {
  if ((BASHPID != $$ || $# == 0)) || [[ $1 == -[!-]* ]]; then
    builtin trap "$@"
    return
  fi
  [[ $1 != -- ]] || shift
  (($# != 1)) || set -- - "$1"
  __cove_words=()
  while (($# > 1)); do
    case ${2^^} in
      0 | EXIT | SIGEXIT) __cove_at_exit=${1#-} ;;
      2 | INT | SIGINT) __cove_at_interrupt=${1#-} ;;
      *) __cove_words+=("$2") ;;
    esac
    set -- "$1" "${@:3}"
  done
  ((${#__cove_words[@]} == 0)) || builtin trap -- "$1" "${__cove_words[@]}"
}

__cove_interrupt() {
  [[ -z $__cove_stopped ]] || return # it came twice
  __cove_stopped=1
  builtin trap '' INT
  [[ -z $__cove_at_interrupt ]] || builtin eval "$__cove_at_interrupt"
  builtin exit 130
}

# know writes all that the next shell must know, as commands. Traps come before the
# functions, of which one is called trap.
__cove_know() {
  builtin shopt -p
  builtin alias -p
  builtin printf '%s\n' "$__cove_made"
  builtin declare -p
  builtin declare -f
  builtin declare -F | while builtin read -r _ __cove_made __cove_text; do
    [[ $__cove_made != *x* ]] || builtin printf 'builtin declare -fx %q\n' "$__cove_text"
  done
  builtin umask -p
  builtin set +o
}

# end is what the shell does last. The next one begins when there is something to run:
# until then an interrupt that came twice can do no harm.
__cove_end() { # STATUS OPTIONS INSIDE [ARGUMENT]…
  __cove_pause "$1" "$2" "${__cove_args[@]}"
  [[ -n $3 ]] || __cove_args=("${@:4}")
  if [[ -n $__cove_at_exit ]]; then
    exit() { __cove_code=${1:-$__cove_code}; }
    __cove_made=$__cove_at_exit __cove_at_exit=''
    builtin eval "$__cove_made"
    builtin unset -f exit
  fi
  __cove_back "${__cove_lent[@]}"
  [[ -z $__cove_runs ]] || __cove_report
  __cove_await
  __cove_resumes=1
  builtin trap - INT
  __cove_made=$(builtin trap -p)
  exec "$__cove_bash" -c "$__cove_boot" "$0" "${__cove_args[@]}" 0<&250 1>&251 2>&252 249< <(__cove_know)
}

# pause is called when code has ended, with how it did and the options it had. Those
# that would disturb the driver are taken back until there is code again.
__cove_pause() { # STATUS OPTIONS [ARGUMENT]…
  builtin set +aefkuvxCET
  builtin trap '' INT
  __cove_args=("${@:3}")
  if [[ -z $__cove_resumes ]]; then
    __cove_code=$1 __cove_set=${2//[!aefkuvxCET]/}
    __cove_set=${__cove_set:+builtin set -$__cove_set;}
    [[ ! -o posix ]] || __cove_set+='builtin set -o posix;'
    builtin set +o posix
  fi
  __cove_resumes=
}

# begin puts the streams out of the way of the code. The copy that bash keeps of a
# descriptor while it is redirected is not inherited by programs, and neither is a
# copy of that.
__cove_begin() {
  exec 240<&0 241>&1 242>&2 250<&0 251>&1 252>&2
  for __cove_made in {10..30}; do
    builtin eval "[[ ! /proc/self/fd/$__cove_made -ef /proc/self/fd/0 ]] || exec 250<&$__cove_made" 240<&-
    builtin eval "[[ ! /proc/self/fd/$__cove_made -ef /proc/self/fd/1 ]] || exec 251>&$__cove_made" 241>&-
    builtin eval "[[ ! /proc/self/fd/$__cove_made -ef /proc/self/fd/2 ]] || exec 252>&$__cove_made" 242>&-
  done
  exec 240<&- 241>&- 242>&- 249<&- 63<&- 0</dev/null
  if [[ -z ${__cove_boot-} ]]; then
    __cove_boot=$BASH_EXECUTION_STRING __cove_bash=$BASH __cove_seq=0 __cove_ticks=0
    __cove_runs='' __cove_stopped='' __cove_kind='' __cove_resumes='' __cove_at_exit='' __cove_at_interrupt=''
    __cove_lent=()
  fi
  builtin trap '__cove_end "$?" "$-" "${FUNCNAME+1}" "$@"' EXIT
}
