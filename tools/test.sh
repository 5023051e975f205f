#!/usr/bin/env bash
# make test: Rust tests and those Python tests that take seconds and pass on a busy machine. All run even if one fails; any
# failing fails.
# CARGO_TEST_ARGS and PYTEST_ARGS are handed on.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYO3_PYTHON=$PWD/.venv/bin/python PATH="$PATH:$HOME/.cargo/bin"
# tcps-py is a module for an interpreter and links only as one; tests/unit covers it.
tools/timed.sh 'Rust tests' 200 cargo test --quiet --no-fail-fast --workspace --exclude tcps-py ${CARGO_TEST_ARGS:-}
rust=$?
tools/timed.sh 'Python tests' 400 tools/python_tests.sh ${PYTEST_ARGS:-quick}
python=$?
[ "$rust" = 0 ] || echo "the Rust tests failed (exit $rust)"
[ "$python" = 0 ] || echo "the Python tests failed (exit $python)"
[ "$rust$python" = 00 ]
