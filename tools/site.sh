#!/usr/bin/env bash
# Builds the documentation site into target/site, from docs/ and the docstrings; any warning fails. The pinned packages of
# tools/site.txt go into an environment of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
bin=target/site-env/bin
key=$(sha256sum <tools/site.txt)
if [ "$(cat target/site-env/stamp 2>/dev/null)" != "$key" ]; then
  "$python" -m venv --clear target/site-env
  "$bin/pip" install --quiet --no-input --disable-pip-version-check --require-hashes -r tools/site.txt
  echo "$key" >target/site-env/stamp
fi
said=target/site.log
NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1 PATH=$PWD/$bin:$PATH mkdocs build --strict >"$said" 2>&1 \
  || { cat "$said" >&2; exit 1; }
echo "site: target/site/index.html"
