#!/usr/bin/env bash
# Tries the lowest versions that pyproject.toml and Cargo.toml declare: the packages in an environment of their own (import, check,
# a short run, some tests), the extras in another one (import, short tests), and the compiler with `cargo check`. A toolchain
# that cannot be had is skipped, visibly.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
python=${PYTHON:-.venv/bin/python}
place=target/lowest
# lowest_of : the pins of what tcpsbed needs and, a line each, of every extra but rerun, which is 500 MB.
lowest_of() {
  "$python" - <<'PYTHON'
import re, tomllib
from pathlib import Path
project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for needs in (project["dependencies"], *(extras[name] for name in extras if name not in ("all", "console", "rerun"))):
    print(*("{}=={}".format(*re.fullmatch(r"([\w-]+)>=([\d.]+)", need).groups()) for need in needs))
PYTHON
}
pins=$(lowest_of)
core=$(head -n 1 <<<"$pins")
if [ "${1-}" = --pins ]; then tr ' ' '\n' <<<"$core" && exit; fi

# environment NAME PIN... : an environment with these packages and pytest, unless it is there.
environment() {
  local folder=$place/$1
  shift
  if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$*" ]; then
    rm -rf "$folder" && "$python" -m venv "$folder"
    "$folder/bin/pip" install --quiet --no-input --disable-pip-version-check "$@" pytest pytest-timeout hypothesis jsonschema
    echo "$*" >"$folder/stamp"
  fi
}
# of ENVIRONMENT TEST... : runs tests in it.
of() { timeout 240 "$place/$1/bin/python" -m pytest -q -p no:cacheprovider "${@:2}"; }

export PYTHONPATH=$PWD/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "[lowest] Python packages: $core"
# shellcheck disable=SC2086
environment core $core
"$place/core/bin/python" -m tcpsbed check scenarios/quickstart.toml
"$place/core/bin/python" -m tcpsbed run scenarios/quickstart.toml --duration "1 s" --quiet --out "$folder/run"
"$place/core/bin/python" -m tcpsbed sweep --help >/dev/null
of core tests/unit/test_config_{units,load,errors,schema}.py

echo "[lowest] with extras: $(tail -n +2 <<<"$pins" | xargs)"
# shellcheck disable=SC2086
environment extras $pins
"$place/extras/bin/python" - <<'PYTHON'
import importlib
for name in ("numba", "matplotlib", "mcap", "openpyxl", "pooch", "onnx", "onnxruntime", "simplejpeg", "av", "websockets", "cryptography", "foxglove",
             "mujoco", "coppeliasim_zmqremoteapi_client", "cbor2", "scipy", "pandas", "polars",
             "distributed", "optuna", "sounddevice"):
    try:
        importlib.import_module(name)
    except OSError as error: # PortAudio is no package of Python
        assert name == "sounddevice", error
        print("[lowest] SKIPPED sound:", error)
PYTHON
unit=tests/unit
of extras $unit/test_analysis_run.py $unit/test_data.py $unit/test_learned.py $unit/test_own_components.py $unit/test_stats.py \
  $unit/test_api_results.py $unit/test_cluster.py --deselect $unit/test_api_results.py::test_a_program_is_clean_for_a_checker_of_types \
  $unit/test_xlsx.py::test_{sheets_are_those_of_a_testbed,a_spreadsheet_is_checked_and_run_as_it_is} \
  $unit/test_media.py::test_{jpeg_follows_a_bit_rate,codecs_of_ffmpeg_give_a_picture_for_each} \
  $unit/test_studio.py::test_the_page_of_a_run_that_is_over_has_the_numbers_of_its_summary \
  $unit/test_console_messages.py::test_a_hand_is_bounded_and_a_ping_comes_back \
  $unit/test_sinks_viewers.py::test_{a_file_of_mcap_has_numbers_places_and_the_log,the_app_of_foxglove_gets_channels_and_messages} \
  $unit/test_robots_mujoco.py::test_the_belt_takes_the_glass_along_and_the_stop_feels_it \
  $unit/test_coppeliasim.py::test_joints_go_where_they_are_sent_in_lock_step

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
