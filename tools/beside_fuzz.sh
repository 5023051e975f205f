#!/usr/bin/env bash
# tools/beside_fuzz.sh SECONDS: fuzz targets for so long each, behind everything else of this machine, and beside them the Python
# tests with the mark `beside`: these wait most of their time, for processes and clocks. What fuzzing says comes at the end.
# The exit status has 1 in it if a fuzz target found something, and 2 if a test failed.
set -uo pipefail
cd "$(dirname "$0")/.."
told=$(mktemp)
nice -n 19 fuzz/run.sh "$1" >"$told" 2>&1 &
fuzz=$!
trap 'kill "$fuzz" 2>/dev/null; rm -f "$told"' EXIT
tools/python_tests.sh beside
tests=$?
wait "$fuzz"
found=$?
cat "$told"
exit $(((found != 0) + 2 * (tests != 0)))
