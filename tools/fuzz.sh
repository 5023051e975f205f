#!/usr/bin/env bash
# tools/fuzz.sh SECONDS : replays the corpus of every fuzz target, then fuzzes each for SECONDS (0: replay only), as
# many at once as there are cores.
# New inputs are kept in fuzz/corpus.local; an input that breaks a target is left in fuzz/artifacts and named.
# Coverage counters come from LLVM options that a stable compiler takes, so no nightly compiler is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
export PATH="$PATH:$HOME/.cargo/bin"
if ! command -v c++ >/dev/null; then
  echo '[fuzz] skipped: libFuzzer needs a C++ compiler (on Debian: apt-get install g++)'
  exit 0
fi

counters='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1'
# With a target named, build scripts and macros are built without the counters.
host=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-target}/fuzz
RUSTFLAGS=$(echo $counters) cargo build --quiet --release --manifest-path fuzz/Cargo.toml \
  --target "$host" --target-dir "$target"
programs=$target/$host/release

one() {
  local name=$1 log
  log=$(mktemp)
  mkdir -p "fuzz/corpus.local/$name" "fuzz/artifacts/$name" "fuzz/corpus/$name"
  local limit="-max_total_time=$seconds"
  if [ "$seconds" = 0 ]; then limit=-runs=0; fi
  if "$programs/$name" "$limit" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="fuzz/artifacts/$name/" "fuzz/corpus.local/$name" "fuzz/corpus/$name" >"$log" 2>&1; then
    echo "[fuzz] $name: $(grep -o 'Done .*' "$log" | tail -n1), $(find "fuzz/corpus.local/$name" -type f | wc -l) inputs kept"
  else
    tail -n 30 "$log"
    echo "[fuzz] $name FAILED"
    return 1
  fi
  rm -f "$log"
}

export -f one
export programs seconds
sed -n '/^\[\[bin\]\]/{n;s/name = "\(.*\)"/\1/p}' fuzz/Cargo.toml | xargs -P "$(nproc)" -I{} bash -c 'one {}'
