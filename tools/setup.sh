#!/usr/bin/env bash
# Makes .venv with the pinned packages and builds tcpsbed into it. Does nothing where nothing has changed.
#
#   tools/setup.sh            all of it
#   tools/setup.sh packages   the packages only (linters need no build)
#
# PYTHON=/path/to/python chooses the interpreter for a new .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
want=${1:-all}

say() { printf '[set-up] %s\n' "$*" >&2; }
die() { printf '[set-up] %s\n' "$@" >&2; exit 1; }

# install_or_tell PACKAGE... : as root installs Debian packages, otherwise says which ones are missing.
install_or_tell() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing $*"
    { apt-get install -y -qq "$@" || { apt-get update -qq && apt-get install -y -qq "$@"; }; } >/dev/null \
      || die "could not install $*; install them by hand, then try again."
  else
    die "these packages are missing: $*" "install them, for example: sudo apt-get install $*"
  fi
}

is_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local name
  for name in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14}; do
    if is_python "$name"; then command -v "$name"; return; fi
  done
  die "Python 3.11 or newer is needed${PYTHON:+ (PYTHON=$PYTHON is not one)}." \
    "Debian 12: sudo apt-get install python3 python3-venv. Then try again, or name one: make run PYTHON=/path/to/python3.11"
}

need_cargo() {
  local wanted found
  wanted=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
  command -v cargo >/dev/null || PATH="$PATH:$HOME/.cargo/bin"
  command -v cargo >/dev/null || die "Rust $wanted or newer is needed, and cargo is not there." \
    "Install it with rustup (https://rustup.rs), open a new shell, then try again."
  found=$(cargo --version | cut -d' ' -f2)
  [ "$(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n1)" = "$wanted" ] \
    || die "Rust $wanted or newer is needed; $(command -v cargo) is $found." \
      "Debian 12's own is too old: install rustup (https://rustup.rs), or run: rustup update stable"
}

# stamped STAMP KEY : whether STAMP holds KEY already.
stamped() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

packages() {
  local key python
  key=$(cat tools/requirements.txt tools/setup.sh | sha256sum)
  stamped .venv/packages.stamp "$key" && [ -x .venv/bin/python ] && is_python .venv/bin/python && return
  python=$(find_python)
  "$python" -c 'import venv, ensurepip' 2>/dev/null || install_or_tell python3-venv
  if [ -e .venv ] && ! is_python .venv/bin/python; then rm -rf .venv; fi
  say "packages into .venv ($("$python" --version), about half a minute)"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --no-input --disable-pip-version-check --no-deps --require-hashes \
    -r tools/requirements.txt \
    || die "the packages of tools/requirements.txt could not be installed; the lines above say why."
  echo "$key" >.venv/packages.stamp
}

sources() {
  find Cargo.toml Cargo.lock pyproject.toml rust-toolchain.toml crates -type f \
    \( -name '*.rs' -o -name '*.toml' -o -name Cargo.lock \) -print0 2>/dev/null | sort -z | xargs -0 sha256sum
}

extension() {
  local key
  key=$({ sources; cat .venv/packages.stamp; env | grep '^CARGO_PROFILE' || true; } | sha256sum)
  stamped .venv/extension.stamp "$key" && compgen -G 'python/tcpsbed/_tcps*.so' >/dev/null && return
  need_cargo
  command -v cc >/dev/null || install_or_tell gcc libc6-dev
  say "building the native module (a cold build takes one to two minutes)"
  VIRTUAL_ENV=$PWD/.venv .venv/bin/maturin develop --release --quiet \
    || die "the native module could not be built; the lines above say why."
  echo "$key" >.venv/extension.stamp
}

mkdir -p target
exec 9>target/setup.lock
if command -v flock >/dev/null; then flock 9; fi
packages
if [ "$want" = all ]; then extension; fi
