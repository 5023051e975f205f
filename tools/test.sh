#!/usr/bin/env bash
# All tests: Rust, fuzz targets (corpus replay and 10 s each, beside Python tests that bear it), the other Python tests. All
# run even if one fails; any failing fails.
# CARGO_TEST_ARGS, FUZZ_SECONDS and PYTEST_ARGS are handed on.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYO3_PYTHON=$PWD/.venv/bin/python PATH="$PATH:$HOME/.cargo/bin"
# tcps-py is a module for an interpreter and links only as one; tests/unit covers it.
tools/timed.sh 'Rust tests' 240 cargo test --quiet --no-fail-fast --workspace --exclude tcps-py ${CARGO_TEST_ARGS:-}
rust=$?
tools/timed.sh 'Fuzz corpus' 60 cargo test --quiet --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
replay=$?
seconds=${FUZZ_SECONDS:-10}
if [ -n "${PYTEST_ARGS:-}" ]; then
  tools/timed.sh 'Fuzz targets' 390 fuzz/run.sh "$seconds"
else
  tools/timed.sh 'Fuzz targets, and tests beside them' 390 tools/beside_fuzz.sh "$seconds"
fi
fuzz=$?
tools/timed.sh 'Python tests' 780 tools/python_tests.sh ${PYTEST_ARGS:-others}
python=$?
[ "$rust" = 0 ] || echo "the Rust tests failed (exit $rust)"
[ "$replay" = 0 ] || echo "an input of fuzz/corpus failed (exit $replay)"
[ "$fuzz" = 0 ] || echo "a fuzz target failed, or a test beside them (exit $fuzz)"
[ "$python" = 0 ] || echo "the Python tests failed (exit $python)"
[ "$rust$replay$fuzz$python" = 0000 ]
