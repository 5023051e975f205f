#!/usr/bin/env bash
# All tests: first Rust, then Python. Both run even if the first fails; either failing fails.
# PYTEST_ARGS and CARGO_TEST_ARGS are handed on.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYO3_PYTHON=$PWD/.venv/bin/python PATH="$PATH:$HOME/.cargo/bin"
# tcps-py is a module for an interpreter and links only as one; tests/unit covers it.
tools/timed.sh 'Rust tests' 240 cargo test --quiet --workspace --exclude tcps-py ${CARGO_TEST_ARGS:-}
rust=$?
tools/timed.sh 'Python tests' 840 .venv/bin/python -m pytest ${PYTEST_ARGS:-tests}
python=$?
[ "$rust" = 0 ] || echo "the Rust tests failed (exit $rust)"
[ "$python" = 0 ] || echo "the Python tests failed (exit $python)"
[ "$rust" = 0 ] && [ "$python" = 0 ]
