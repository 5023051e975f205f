#!/usr/bin/env bash
# tools/beside_fuzz.sh SECONDS: fuzz targets for so long each, and beside them the Python tests with the mark `beside`: these
# wait most of their time, for processes and clocks. What fuzzing says comes at the end.
# The exit status has 1 in it if a fuzz target found something, and 2 if a test failed.
set -uo pipefail
cd "$(dirname "$0")/.."
told=$(mktemp)
set -m # each of both in a process group of its own, so that what it started ends with it
fuzz/run.sh "$1" >"$told" 2>&1 &
fuzz=$!
tools/python_tests.sh beside &
tests=$!
trap 'kill -INT -- "-$tests" 2>/dev/null; kill -- "-$fuzz" 2>/dev/null; wait; rm -f "$told"' EXIT
trap 'exit 130' INT TERM
wait "$tests"
failed=$?
wait "$fuzz"
found=$?
trap - EXIT INT TERM
cat "$told"
rm -f "$told"
exit $(((found != 0) + 2 * (failed != 0)))
