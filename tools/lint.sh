#!/usr/bin/env bash
# All linters, one after the other; the names of those that failed come last.
set -uo pipefail
cd "$(dirname "$0")/.."
export PYO3_PYTHON=$PWD/.venv/bin/python PATH="$PATH:$HOME/.cargo/bin"
bin=.venv/bin
failed=()

check() {
  local name=$1
  shift
  printf '[lint] %s\n' "$name"
  "$@" || failed+=("$name")
}

check 'cargo fmt (mend with: make format)' cargo fmt --all --check -- -l
check 'cargo clippy' cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
check 'ruff (mend with: make format)' "$bin/ruff" check --quiet --output-format concise .
check 'ruff format (mend with: make format)' "$bin/ruff" format --quiet --check --output-format concise .
check 'mypy' "$bin/mypy" --no-error-summary
check 'mypy of benchmarks' env MYPYPATH=python:benches "$bin/mypy" --no-error-summary benches
check 'mypy of tools' env MYPYPATH=python:tools "$bin/mypy" --no-error-summary --ignore-missing-imports \
  --disable-error-code no-any-return --disable-error-code unused-ignore tools/*.py
check 'arrows and ARCHITECTURE.md (draw again with: make drawing)' "$bin/python" tools/check_arrows.py
check 'claims' "$bin/python" tools/claims.py --quiet
check 'costs of security (draw again with: tools/security_cost.py --write)' "$bin/python" tools/security_cost.py
check 'scoreboard (draw again with: tools/scoreboard.py --write)' "$bin/python" tools/scoreboard.py
check 'tables of parameters and metrics (write again with: tools/tables.py --write)' "$bin/python" tools/tables.py
check 'shell scripts' bash -n tools/*.sh .ci/run

if [ "${#failed[@]}" -gt 0 ]; then
  printf '[lint] failed: %s\n' "${failed[@]}"
  exit 1
fi
echo '[lint] clean'
