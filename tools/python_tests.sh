#!/usr/bin/env bash
# All Python tests, or what pytest is told by arguments. What runs in simulated time needs no quiet machine: unit and paper
# tests run side by side, and what one says comes when both are through. What runs on the machine's clock has it for itself.
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(.venv/bin/python -m pytest)
[ $# = 0 ] || exec "${pytest[@]}" "$@"
told=$(mktemp)
"${pytest[@]}" tests/paper -m 'not realtime and not interop' >"$told" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$told"' EXIT
"${pytest[@]}" tests/unit -m 'not realtime and not interop'
unit=$?
wait "$beside"
paper=$?
cat "$told"
"${pytest[@]}" tests -m 'realtime or interop'
clock=$?
[ "$unit$paper$clock" = 000 ]
