#!/bin/sh
# Runs fuzz targets under libFuzzer, as many at once as there are cores: fuzz/run.sh SECONDS [TARGET ...]
#
# Finds are kept in corpus.local/TARGET, inputs that break something in corpus.local/crashes-TARGET.
# Coverage is compiled in by stable flags of the compiler; libFuzzer itself needs a C++ compiler.
set -eu
seconds=${1:?"usage: fuzz/run.sh SECONDS [TARGET ...]"}
shift
cd "$(dirname "$0")"
if ! command -v "${CXX:-c++}" >/dev/null; then
    echo "fuzz: SKIPPED, libFuzzer needs a C++ compiler (Debian: g++)" >&2
    exit 0
fi

host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR="$PWD/../target/fuzz"
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
cargo build --quiet --release --features libfuzzer --bins --target "$host"

one() {
    mkdir -p "corpus.local/$1" "corpus.local/crashes-$1"
    log="corpus.local/$1.log"
    if "$CARGO_TARGET_DIR/$host/release/$1" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="corpus.local/crashes-$1/" \
        "corpus.local/$1" "corpus/$1" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        cover=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
        echo "fuzz $1: $runs runs in $seconds s, coverage $cover, nothing found"
    else
        echo "fuzz $1: FOUND SOMETHING, log in fuzz/$log"
        tail -n 25 "$log"
        return 1
    fi
}

[ $# -gt 0 ] || set -- $(sed -n 's/^path = "fuzz_targets\/\(.*\)\.rs"/\1/p' Cargo.toml)
cores=$(getconf _NPROCESSORS_ONLN)
status=0
while [ $# -gt 0 ]; do
    running=""
    for _ in $(seq "$cores"); do
        [ $# -gt 0 ] || break
        one "$1" &
        running="$running $!"
        shift
    done
    for job in $running; do
        wait "$job" || status=1
    done
done
exit $status
