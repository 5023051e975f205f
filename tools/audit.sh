#!/usr/bin/env bash
# Looks for known vulnerabilities: of the crates in Cargo.lock (cargo-deny, RustSec), of the Python pins (pip-audit, PyPI).
# Where an advisory database cannot be reached, or a tool is not there, it says so and goes on; what it finds fails.
# Continuous integration runs it with cargo-deny (.github/workflows/ci.yml).
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin"
status=0
skipped() { printf '[audit] SKIPPED %s: %s\n' "$1" "$2"; }

if ! command -v cargo-deny >/dev/null; then
  skipped crates 'needs cargo-deny (cargo install cargo-deny --version 0.20.2 --locked), which .github/workflows/ci.yml installs'
elif ! timeout 120 cargo deny --log-level error fetch db; then
  skipped crates 'the RustSec advisory database could not be fetched'
else
  echo '[audit] crates'
  cargo deny --log-level error check advisories || status=1
fi

python=${PYTHON:-.venv/bin/python}
bin=target/audit/bin
key=$(sha256sum <tools/audit.txt)
if [ "$(cat target/audit/stamp 2>/dev/null)" != "$key" ]; then
  "$python" -m venv --clear target/audit \
    && "$bin/pip" install --quiet --no-input --disable-pip-version-check --require-hashes -r tools/audit.txt \
    && echo "$key" >target/audit/stamp
fi
# known PINS : whether pip-audit knows of a vulnerability in any of them; 2 where it could not look.
known() { timeout 300 "$bin/pip-audit" --progress-spinner off --disable-pip --no-deps --strict -r "$1"; }
canary=$(mktemp)
trap 'rm -f "$canary"' EXIT
echo 'jinja2==2.4.1' >"$canary" # vulnerable for many years: where nothing is known of it, nothing is known at all
if [ ! -x "$bin/pip-audit" ]; then
  skipped 'Python packages' 'pip-audit could not be installed'
elif ! known "$canary" 2>&1 | grep -q '^jinja2 *2\.4\.1 '; then
  skipped 'Python packages' 'the database of PyPI could not be reached'
else
  echo '[audit] Python packages'
  known tools/requirements.txt || status=1
fi
exit "$status"
