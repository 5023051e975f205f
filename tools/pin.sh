#!/usr/bin/env bash
# Writes tools/requirements.txt, audit.txt, wheel.txt and site.txt, each out of the file that ends in .in: every package with the
# hashes of its files, so that a file that was exchanged is not installed. Needs uv (`pip install uv`, here into target/pin).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
[ -x target/pin/bin/uv ] || { "$python" -m venv target/pin && target/pin/bin/pip install --quiet --no-input uv; }
pin() {
  target/pin/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 \
    "${@:2}" "tools/$1.in" --output-file "target/$1.pinned"
  { echo "# Written by tools/pin.sh out of tools/$1.in."; cat "target/$1.pinned"; } >"tools/$1.txt"
}
pin requirements --no-deps
pin audit
pin wheel
pin site
