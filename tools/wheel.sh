#!/usr/bin/env bash
# Builds the wheel into dist/, looks into it, and tries it in an empty virtual environment outside the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
rm -f dist/*.whl
# Messages of panics name source files: without the folders of this machine.
RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/tcpsbed" \
  CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/wheel" .venv/bin/maturin build --release --locked --quiet --out dist
wheel=$(echo "$root"/dist/tcpsbed-*.whl)
.venv/bin/python tools/licences.py --wheel "$wheel"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --no-input --disable-pip-version-check \
  --constraint tools/requirements.txt "$wheel"
cd "$place"
venv/bin/tcpsbed init trial.toml
venv/bin/tcpsbed check trial.toml
venv/bin/tcpsbed run trial.toml --out trial --quiet
test -s trial/summary.json && test -s trial/report.html
echo "The wheel works in an empty environment: $wheel ($(du -h "$wheel" | cut -f1))"
