#!/usr/bin/env bash
# Makes the file system that the sandbox image of tests begins with, from Debian's
# packages and without an image registry, and prints the path of its archive. It is
# made once for each state of its list and kept in .cache/image.
#
# It has the packages of images/sandbox/Dockerfile, so that the image itself is built
# without a network, and what the conformance suite and the attacks use.
#
# usage: image.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

dockerfile=$root/images/sandbox/Dockerfile
release=$(sed -n 's/^ARG BASE=debian:\([a-z]*\)-slim$/\1/p' "$dockerfile")
# Everything between the option and the end of the command.
packages=$(sed -n '/--no-install-recommends \\$/,/^ && rm/p' "$dockerfile" | sed '1d;$d;s/[ \\]//g' | paste -sd,)
if [[ -z $release || -z $packages ]]; then
  echo "image.sh: $dockerfile does not say what it is made of as it used to" >&2
  exit 1
fi
packages+=,curl,passwd,procps

form=1 # counts what is done with them below
key=$(echo "$(uname -m) $release $packages $form" | sha256sum | cut -c1-16)
archive=$root/.cache/image/$key.tar
if [[ -f $archive ]]; then
  echo "$archive"
  exit
fi
if [[ $(id -u) != 0 ]]; then
  echo "image.sh: only root can make the image; run scripts/image.sh as root once" >&2
  exit 1
fi
if ! command -v mmdebstrap >/dev/null; then
  echo "image.sh: mmdebstrap is not installed; sudo apt-get install mmdebstrap debian-archive-keyring" >&2
  exit 1
fi

mkdir -p "$root/.cache/image"
# Whoever comes second waits, and finds what the first has made.
exec 9>"$root/.cache/image/lock"
flock 9
if [[ -f $archive ]]; then
  echo "$archive"
  exit
fi
work=$(mktemp -d "$root/.cache/image/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/tree
log=$root/.cache/image.log
# The package lists go, and so do texts that nobody reads in a sandbox.
leave_out=()
for path in doc info lintian locale man; do
  leave_out+=(--dpkgopt="path-exclude=/usr/share/$path/*")
done
echo "making the sandbox image of Debian's packages (once; log in .cache/image.log)" >&2
if ! mmdebstrap --mode=root --variant=apt --format=directory --include="$packages" "${leave_out[@]}" "$release" "$tree" >"$log" 2>&1 </dev/null; then
  tail -n 5 "$log" >&2
  echo "image.sh: mmdebstrap could not make it" >&2
  exit 1
fi

# Nothing is to be had from outside while an image is built on this.
: >"$tree/etc/apt/sources.list"
# An engine writes no resolv.conf of its own for a sandbox without a network, and
# the way out of such a one listens here.
rm -f "$tree/etc/resolv.conf"
echo 'nameserver 127.0.0.1' >"$tree/etc/resolv.conf"
chmod 644 "$tree/etc/resolv.conf"
rm -rf "$tree"/var/cache/{apt,debconf,ldconfig}/* "$tree"/var/lib/apt/lists/* "$tree"/var/log/*.log "$tree"/var/log/apt "$tree"/tmp/*

tar --create --file="$work/tar" --directory="$tree" --numeric-owner --sort=name --exclude='./dev/*' .
mv -f "$work/tar" "$archive"
find "$root/.cache/image" -maxdepth 1 -name "*.tar" ! -name "$key.tar" -mtime +1 -delete
echo "$archive"
