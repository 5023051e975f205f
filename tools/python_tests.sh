#!/usr/bin/env bash
# All Python tests, or what pytest is told by arguments. Unit and paper tests run side by side, and what one says comes when
# both are through: papers in simulated time need no quiet machine. What has the mark `realtime` or `interop` asserts what the
# machine's clock says, or has it between two programs: it runs alone, and last.
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
