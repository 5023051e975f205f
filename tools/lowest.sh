#!/usr/bin/env bash
# Tries the lowest versions that pyproject.toml and Cargo.toml declare: the packages in an environment of their own (import, check,
# a short run, some tests), and the compiler with `cargo check`. A toolchain that cannot be had is skipped, visibly.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
python=${PYTHON:-.venv/bin/python}
place=target/lowest
pins=$("$python" - <<'PYTHON'
import re, tomllib
from pathlib import Path
for need in tomllib.loads(Path("pyproject.toml").read_text())["project"]["dependencies"]:
    name, lowest = re.fullmatch(r"([\w-]+)>=([\d.]+)", need).groups()
    print(f"{name}=={lowest}")
PYTHON
)
if [ "${1-}" = --pins ]; then echo "$pins" && exit; fi
if [ "$(cat $place/stamp 2>/dev/null)" != "$pins" ]; then
  rm -rf "$place" && "$python" -m venv "$place"
  # shellcheck disable=SC2086
  "$place/bin/pip" install --quiet --no-input --disable-pip-version-check $pins pytest pytest-timeout hypothesis jsonschema
  echo "$pins" >$place/stamp
fi
echo "[lowest] Python packages: $(echo $pins)"
export PYTHONPATH=$PWD/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$place/bin/python" -m tcpsbed check scenarios/quickstart.toml
"$place/bin/python" -m tcpsbed run scenarios/quickstart.toml --duration "1 s" --quiet --out "$folder/run"
"$place/bin/python" -m tcpsbed sweep --help >/dev/null
timeout 240 "$place/bin/python" -m pytest -q -p no:cacheprovider tests/unit/test_config_units.py tests/unit/test_config_load.py \
  tests/unit/test_config_errors.py tests/unit/test_config_schema.py

rust=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
if ! command -v rustup >/dev/null; then
  echo "[lowest] SKIPPED Rust $rust: needs rustup"
elif ! timeout 240 rustup toolchain install "$rust" --profile minimal --no-self-update >/dev/null 2>&1; then
  echo "[lowest] SKIPPED Rust $rust: the toolchain could not be had"
else
  echo "[lowest] Rust $rust"
  CARGO_TARGET_DIR=$place/cargo timeout 600 cargo "+$rust" check --quiet --locked --workspace
fi
echo '[lowest] the declared versions work'
