#!/usr/bin/env bash
# What make test-all adds to make test: random faults, inputs that fuzzing has found, fuzz targets for 6 s each, and beside them tests
# that take long; then, alone, tests that only a quiet machine passes. All run even if one fails; any failing fails.
# FUZZ_SECONDS is handed on.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYO3_PYTHON=$PWD/.venv/bin/python PATH="$PATH:$HOME/.cargo/bin"
if [ "${1:-}" = fuzz ]; then
  PROPTEST_CASES=2000 tools/timed.sh 'Schedules of faults' 120 \
    cargo test --quiet --workspace --exclude tcps-py --test virtual_time faults
  faults=$?
  tools/timed.sh 'Fuzz corpus' 90 cargo test --quiet --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
  replay=$?
  tools/timed.sh 'Fuzz targets' 400 fuzz/run.sh "${FUZZ_SECONDS:-6}"
  fuzz=$?
  [ "$faults" = 0 ] || echo "a schedule of faults failed (exit $faults)"
  [ "$replay" = 0 ] || echo "an input of fuzz/corpus failed (exit $replay)"
  [ "$fuzz" = 0 ] || echo "a fuzz target failed (exit $fuzz)"
  [ "$faults$replay$fuzz" = 000 ]
  exit
fi
said=$(mktemp)
setsid nice -n 5 tools/test_rest.sh fuzz >"$said" 2>&1 & # a session of its own, so that it can be ended whole
beside=$!
trap 'kill -- -"$beside" 2>/dev/null; rm -f "$said"' EXIT
tools/timed.sh 'Python tests, long' 900 tools/python_tests.sh long
long=$?
wait "$beside"
fuzz=$?
cat "$said"
tools/timed.sh 'Python tests, alone' 720 tools/python_tests.sh alone
alone=$?
[ "$long" = 0 ] || echo "the long Python tests failed (exit $long)"
[ "$alone" = 0 ] || echo "the Python tests that run alone failed (exit $alone)"
[ "$fuzz$long$alone" = 000 ]
