#!/usr/bin/env bash
# What make test-all adds to make test: inputs that fuzzing has found, fuzz targets for 10 s each, tests that take long, and
# those that only a quiet machine passes. All run even if one fails; any failing fails.
# FUZZ_SECONDS is handed on.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYO3_PYTHON=$PWD/.venv/bin/python PATH="$PATH:$HOME/.cargo/bin"
tools/timed.sh 'Fuzz corpus' 60 cargo test --quiet --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
replay=$?
tools/timed.sh 'Fuzz targets' 330 fuzz/run.sh "${FUZZ_SECONDS:-10}"
fuzz=$?
tools/timed.sh 'Python tests, long and alone' 900 tools/python_tests.sh rest
python=$?
[ "$replay" = 0 ] || echo "an input of fuzz/corpus failed (exit $replay)"
[ "$fuzz" = 0 ] || echo "a fuzz target failed (exit $fuzz)"
[ "$python" = 0 ] || echo "the Python tests failed (exit $python)"
[ "$replay$fuzz$python" = 000 ]
