#!/usr/bin/env bash
# Python tests, in three parts that together are all of them.
#
#   tools/python_tests.sh quick   what takes seconds and passes on a busy machine: units, short papers, and, of the tests on the
#                                 machine's clock or with other programs, those marked `beside`; three runs side by side
#   tools/python_tests.sh long    what takes long (`slow`) and passes on a busy machine; three runs side by side
#   tools/python_tests.sh alone   what the machine's clock or other programs judge, again where the machine was busy
#                                 (tests/again.py)
#   tools/python_tests.sh ARGS    pytest with these arguments
set -uo pipefail
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE # tests start hundreds of short commands, which would compile all that they import each time
pytest=(.venv/bin/python -m pytest --durations=15 --durations-min=4)
clock='realtime or interop'

told=$(mktemp -d) running=()
trap 'for one in "${running[@]}"; do kill "${one%%:*}" 2>/dev/null; done; rm -rf "$told"' EXIT

# beside NAME SELECTION PATH...: starts a run whose output waits until it is through.
beside() {
  "${pytest[@]}" -m "$2" "${@:3}" >"$told/$1" 2>&1 &
  running+=("$!:$1")
}

# await STATUS: shows what ran beside, and ends with that status, or with 1 if one of those failed.
await() {
  local failed=$1
  for one in "${running[@]}"; do
    wait "${one%%:*}" || failed=1
    cat "$told/${one#*:}"
  done
  running=()
  exit "$failed"
}

case "${1:-}" in
quick)
  beside clock "($clock) and beside and not slow" tests
  beside first "not ($clock) and not slow" tests/paper tests/unit/test_[a-m]*.py
  "${pytest[@]}" tests/unit --ignore-glob='*/test_[a-m]*.py' -m "not ($clock) and not slow"
  await $?
  ;;
long)
  beside clock "slow and ($clock) and beside" tests
  beside pages "slow and not ($clock)" tests/unit/test_page_commands.py
  "${pytest[@]}" tests --ignore-glob='*/test_page_commands.py' -m "slow and not ($clock)"
  await $?
  ;;
alone) "${pytest[@]}" tests/{interop,paper,realtime} -m "($clock) and not beside" ;;
*) "${pytest[@]}" "$@" ;;
esac
