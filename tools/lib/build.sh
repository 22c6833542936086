# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Builds the project on any machine: packages, configuration, compilation. Sourced, never run.

packages=(g++ lld cmake ninja-build pkg-config libdpdk-dev libpcap-dev libgtest-dev libcli11-dev libboost-dev
  libxxhash-dev scdoc iproute2 nftables procps python3-dev pybind11-dev util-linux)

newly_installed= # not empty if this run has installed packages

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
    sed -n 's/ installed$//p')
  printf '%s\n' "${packages[@]}" | sort -u | grep -vxF -f <(echo "${installed:-none}")
}

# Whether sudo works: without a password, or at a terminal where one can be typed.
may_sudo() { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }

# apt_install PREFIX... -- PACKAGE...: PREFIX runs a command as root.
apt_install() {
  local as_root=() patience=(-oAcquire::Retries=3 -oDPkg::Lock::Timeout=120)
  while [ "$1" != -- ]; do as_root+=("$1") && shift; done
  shift
  "${as_root[@]}" apt-get -qq "${patience[@]}" update >&2 &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq "${patience[@]}" install -y \
      --no-install-recommends "$@" >&2
}

install_packages() {
  local missing as_root=() attempt
  command -v dpkg-query >/dev/null || return 0 # not Debian: cmake names what it does not find
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if ! may_sudo; then
      fail "packages are missing and this user may not install them; as root: apt-get install" \
        "--no-install-recommends ${missing[*]}"
    fi
    as_root=(sudo)
  fi
  say "installing with apt: ${missing[*]}"
  for attempt in 1 2 3; do
    apt_install "${as_root[@]}" -- "${missing[@]}" && newly_installed=1 && return
    say "apt could not install them (attempt $attempt of 3)" # another apt at work, or a server away
    [ "$attempt" -eq 3 ] || sleep 10
  done
  exit 1
}

# Clones of the project share the compiler cache.
use_ccache() {
  command -v ccache >/dev/null || return 0
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
}

build_directory_of() {
  case $1 in
    release) echo build ;;
    *) echo "build-$1" ;;
  esac
}

# The presets use Ninja. CMake cannot change the generator of a directory that was configured for
# another one, so that directory keeps it.
generator_of() { sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$1/CMakeCache.txt" 2>/dev/null; }

# Whether DIRECTORY is configured with these options. The build itself notices files that changed.
configured_with() { # DIRECTORY [-DNAME=VALUE...]
  local directory=$1 option
  [ -z "$newly_installed" ] && [ -e "$directory/build.ninja" ] || return
  shift
  for option in "${@#-D}"; do
    grep -q "^${option%%=*}:[A-Z]*=${option#*=}$" "$directory/CMakeCache.txt" || return
  done
}

# configure PRESET [-DNAME=VALUE...]
configure() {
  local directory generator
  directory=$(build_directory_of "$1")
  ! configured_with "$directory" "${@:2}" || return 0
  generator=$(generator_of "$directory")
  cmake --preset "$1" -G "${generator:-Ninja}" "${@:2}"
}

# build PRESET [-DNAME=VALUE...] [-- TARGET...]: quiet unless something is wrong. In the root of the project.
build() {
  local preset=$1 directory log begun=$SECONDS options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
  [ $# -eq 0 ] || shift
  directory=$(build_directory_of "$preset")
  log=$work/build-$preset.log
  use_ccache
  say "building ($preset, in $directory)"
  configure "$preset" "${options[@]}" >"$log" 2>&1 &&
    cmake --build "$directory" -j"$(nproc)" ${1+--target "$@"} >>"$log" 2>&1 ||
    { grep -aE -A20 '^FAILED|error:|Error' "$log" | head -n 60 >&2; tail -n 20 "$log" >&2; fail "the build failed"; }
  say "built ($preset) in $((SECONDS - begun)) s"
}
