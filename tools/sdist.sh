#!/usr/bin/env bash
# Makes the source distribution in dist/, builds a wheel of it by pip in an empty environment, and tries that. It is built
# without optimisation: what is to be seen is that all of the source is there.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -f dist/*.tar.gz
.venv/bin/maturin sdist --out dist
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place/venv"
unset PYO3_PYTHON # of this tree: that of the empty environment is to be found
CARGO_TARGET_DIR="$(realpath "${CARGO_TARGET_DIR:-target}")/sdist" CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
  CARGO_PROFILE_RELEASE_CODEGEN_UNITS=32 RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
  "$place/venv/bin/pip" wheel --quiet --no-input --disable-pip-version-check --no-deps --wheel-dir "$place" dist/tcpsbed-*.tar.gz
.venv/bin/python tools/licences.py --wheel "$place"/tcpsbed-*.whl
tools/try_wheel.sh .venv/bin/python "$place"/tcpsbed-*.whl
echo "The source distribution builds in an empty environment: $(echo dist/*.tar.gz) ($(du -h dist/*.tar.gz | cut -f1))"
