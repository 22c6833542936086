# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Builds the project on any machine: packages, configuration, compilation. Sourced, never run.

packages=(g++ cmake ninja-build pkg-config libdpdk-dev libpcap-dev libgtest-dev libcli11-dev libboost-dev
  libxxhash-dev scdoc iproute2 nftables procps util-linux)

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      echo "$package"
  done
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
    apt_install "${as_root[@]}" -- "${missing[@]}" && return
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

# configure PRESET [CMAKE-OPTION...]
configure() {
  local preset=$1 generator
  shift
  generator=$(generator_of "$(build_directory_of "$preset")")
  cmake --preset "$preset" -G "${generator:-Ninja}" "$@"
}

# build PRESET [CMAKE-OPTION...]: quiet unless something is wrong. In the root of the project.
build() {
  local preset=$1 directory log begun=$SECONDS
  shift
  directory=$(build_directory_of "$preset")
  log=$work/build-$preset.log
  use_ccache
  say "building ($preset, in $directory)"
  configure "$preset" "$@" >"$log" 2>&1 && cmake --build "$directory" -j2 >>"$log" 2>&1 ||
    { tail -n 60 "$log" >&2; fail "the build failed"; }
  say "built ($preset) in $((SECONDS - begun)) s"
}
