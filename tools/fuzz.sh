#!/usr/bin/env bash
# tools/fuzz.sh SECONDS : every fuzz target for SECONDS, with new inputs kept in fuzz/corpus.local.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
export PATH="$PATH:$HOME/.cargo/bin" TCPS_FUZZ_SECONDS=$seconds TCPS_FUZZ_CORPUS=$PWD/fuzz/corpus.local
mkdir -p "$TCPS_FUZZ_CORPUS"
exec cargo test --release --workspace --exclude tcps-py -- fuzz --nocapture --test-threads=1
