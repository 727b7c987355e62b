# shellcheck shell=bash
# Functions that the scripts of this folder share; sourced by bash, never run.
# Sets `top`, the root of the source tree, and goes there, so that every script works from any folder.

set -euo pipefail
export LC_ALL=C.UTF-8
export CALLED_FROM=$PWD # names of files that the user gives are relative to it
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$top"

# What the caller's shell says about HiPS must not change what we show or test. Only a seed comes through.
for name in $(compgen -e | grep '^HIPS_' | grep -vx HIPS_SEED || true); do unset "$name"; done

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'
else
  bold='' red='' plain=''
fi

section() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
say_error() { printf '%s%s: %s%s\n' "$red" "${0##*/}" "$1" "$plain" >&2; }
die() {
  say_error "$1"
  exit 1
}

# Packages of some groups of packages.txt, one on each line.
packages_of() {
  local group
  for group in "$@"; do
    sed -nE "s/^${group}[[:space:]]+([^[:space:]#]+).*/\1/p" tools/packages.txt
  done
}

# Installs what is missing of some groups; needs neither network nor rights where nothing is.
install_packages() {
  local package missing=() as_root=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    section "This system has no packages of Debian; what takes the place of these is needed, and Meson says what is missing: $(packages_of "$@" | tr '\n' ' ')"
    return 0
  fi
  while read -r package; do
    # A package may be there for several architectures.
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done < <(packages_of "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  section "Installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "neither root nor sudo; as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
  # The lists of a fresh machine are empty, those of an old one stale.
  if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; then
    "${apt[@]}" update
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
  fi
}

# configure_build DIR OPTION...: a build directory with these options. One that was made with others, elsewhere,
# or half, is made anew; else nothing happens, and ninja itself notices changed meson.build files.
configure_build() {
  local dir=$1
  shift
  local wanted="$top $*"
  if [ -f "$dir/build.ninja" ] && [ "$(cat "$dir/.configured" 2>/dev/null)" = "$wanted" ]; then return 0; fi
  rm -rf "$dir"
  meson setup "$dir" "$@" >"$dir.log" 2>&1 || {
    cat "$dir.log" >&2
    rm -f "$dir.log"
    return 1
  }
  rm -f "$dir.log"
  printf '%s\n' "$wanted" >"$dir/.configured"
}

# Options of builds for those who only use HiPS. Several files at a time: half of the time.
without_tests=(-Dtests=disabled -Dbenchmarks=disabled -Dfortran=disabled -Dbindings=disabled -Dmpi=enabled
  --unity on --unity-size 12)

# build_targets DIR [TARGET...]: one line while all goes well, everything when it does not.
build_targets() {
  local dir=$1
  shift
  local status=0
  if [ -t 1 ]; then
    ninja -C "$dir" -j "$(nproc)" "$@" || status=$?
  else
    ninja -C "$dir" -j "$(nproc)" --quiet "$@" || status=$?
  fi
  return "$status"
}

# mpirun for any number of ranks on any number of cores; Open MPI asks root twice whether it means it.
mpirun_here() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "$@"
}
