#!/usr/bin/env bash
# All Python tests, or what pytest is told by arguments. Unit and paper tests run side by side, and what one says comes when
# both are through: papers in simulated time need no quiet machine. What has the mark `realtime` or `interop` asserts what the
# machine's clock says, or has it between two programs: it runs alone, and last.
#
#   tools/python_tests.sh beside   only those of the last with the mark `beside`, which bear a busy machine
#   tools/python_tests.sh others   all but those
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(.venv/bin/python -m pytest)
clock='realtime or interop'
case "$*" in
'') ;;
beside) exec "${pytest[@]}" tests -m beside ;;
others) clock="($clock) and not beside" ;;
*) exec "${pytest[@]}" "$@" ;;
esac
told=$(mktemp)
"${pytest[@]}" tests/paper -m 'not realtime and not interop' >"$told" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$told"' EXIT
"${pytest[@]}" tests/unit -m 'not realtime and not interop'
unit=$?
wait "$beside"
paper=$?
cat "$told"
"${pytest[@]}" tests -m "$clock"
alone=$?
[ "$unit$paper$alone" = 000 ]
