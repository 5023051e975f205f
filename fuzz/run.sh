#!/bin/sh
# Runs fuzz targets, as many at once as there are cores (FUZZ_JOBS: another number): those of fuzz_targets under libFuzzer,
# those of devices, whose parsers are Python, by drive.py.
#
#   fuzz/run.sh SECONDS [TARGET ...]          each for so long
#   fuzz/run.sh --until SECONDS [TARGET ...]  each until it has had so much processor time as it is now, or 10 million inputs
#   fuzz/run.sh --ledger [TARGET ...]         what each has had
#   fuzz/run.sh --keep                        adds what was run here to ledger.tsv, which is committed
#
# Finds are kept in corpus.local/TARGET, inputs that break something in corpus.local/crashes-TARGET. A line a run goes into
# corpus.local/ledger.tsv: when, target, its state, processor seconds, runs, what came of it. The state is a hash of the
# target's machine code, or of its Python sources: what was spent before these changed counts for the code before. The same
# compiler makes the same code in the same folder. A run that Ctrl-C or SIGTERM ends has its line, too.
# Coverage is compiled in by stable flags of the compiler; libFuzzer itself needs a C++ compiler, drive.py the packages of
# .venv (PYTHON: another interpreter).
set -eu
usage="usage: fuzz/run.sh SECONDS | --until SECONDS | --ledger, then [TARGET ...]; or fuzz/run.sh --keep"
mode=for
case ${1-} in
--until | --ledger | --keep) mode=${1#--} && shift ;;
esac
seconds=0
most=10000000
case $mode in
for | until)
    case ${1-} in
    '' | *[!0-9]*) echo "$usage" >&2 && exit 2 ;;
    esac
    seconds=$1 && shift
    ;;
esac
cd "$(dirname "$0")"
kept=ledger.tsv
ledger=corpus.local/ledger.tsv
mkdir -p corpus.local
touch "$ledger"
if [ "$mode" = keep ]; then # one line for each find, and for each target and state what was run since
    all=$(sort "$kept" "$ledger" | awk 'BEGIN { FS = OFS = "\t" }
        $6 == "found" { print; for (key in when) if (index(key, $2 FS) == 1) delete when[key]
            for (key in seconds) if (index(key, $2 FS) == 1) { delete seconds[key]; delete runs[key] }
            next }
        { key = $2 FS $3; when[key] = $1; seconds[key] += $4; runs[key] += $5 }
        END { for (key in when) print when[key], key, seconds[key], runs[key], "nothing" }' | sort)
    printf '%s\n' "$all" >"$kept.new"
    mv "$kept.new" "$kept"
    : >"$ledger"
    exit
fi
python=${PYTHON:-../.venv/bin/python}
compiled=$(sed -n 's/^path = "fuzz_targets\/\(.*\)\.rs"/\1/p' Cargo.toml)
interpreted=$(cd devices && ls -- *.py | sed 's/\.py$//')
[ $# -gt 0 ] || set -- $compiled $interpreted

# is_python TARGET: whether its parser is Python.
is_python() {
    [ -f "devices/$1.py" ]
}

# compile TARGET ...: those of them that are compiled.
compile() {
    bins=""
    for target in "$@"; do
        is_python "$target" || bins="$bins --bin $target"
    done
    [ -n "$bins" ] || return 0
    if ! command -v "${CXX:-c++}" >/dev/null; then
        echo "fuzz: SKIPPED, libFuzzer needs a C++ compiler (Debian: g++)" >&2
        exit 0
    fi
    host=$(rustc -vV | sed -n 's/^host: //p')
    export CARGO_TARGET_DIR="$PWD/../target/fuzz"
    export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing \
--remap-path-prefix=$(cd .. && pwd)=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
    cargo build --quiet --release --features libfuzzer $bins --target "$host"
    programs="$CARGO_TARGET_DIR/$host/release"
}
compile "$@"

# state TARGET: a hash of its machine code, or of the whole program without objcopy; of its sources, where it is Python.
state() {
    if is_python "$1"; then
        "$python" drive.py --state "$1"
        return
    fi
    code="corpus.local/$1.code"
    objcopy -O binary --only-section=.text "$programs/$1" "$code" 2>/dev/null || cp "$programs/$1" "$code"
    sha256sum <"$code" | cut -c1-12
    rm "$code"
}

# spent TARGET STATE: processor seconds and runs in this state, and seconds in every state, since it last found something.
spent() {
    awk -v target="$1" -v state="$2" '
        $2 == target && $6 == "found" { here = runs = all = 0; next }
        $2 == target { all += $4 }
        $2 == target && $3 == state { here += $4; runs += $5 }
        END { printf "%.0f %.0f %.0f\n", here, runs, all }' "$kept" "$ledger"
}

# took BEFORE AFTER: processor seconds of children between two outputs of `times`.
took() {
    awk 'FNR == 2 { gsub("s", ""); split($1 " " $2, t, /[m ]/); all = t[1] * 60 + t[2] + t[3] * 60 + t[4] - all }
        END { printf "%.1f", all }' "$1" "$2"
    rm "$1" "$2"
}

# fuzz TARGET SECONDS RUNS: one run in place of this process, of any number of inputs where RUNS is -1; finds go to
# corpus.local.
fuzz() {
    if is_python "$1"; then
        exec "$python" drive.py "$1" "$2" "$3" "corpus.local/$1" "corpus/$1" "corpus.local/crashes-$1"
    else
        exec "$programs/$1" -max_total_time="$2" -runs="$3" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
            -artifact_prefix="corpus.local/crashes-$1/" "corpus.local/$1" "corpus/$1"
    fi
}

# round TARGET STATE SECONDS RUNS: one run, and its line in the ledger.
round() {
    log="corpus.local/$1.log"
    came=nothing
    status=0
    times >"$log.$$.before"
    fuzz "$1" "$3" "$4" >"$log" 2>&1 &
    wait "$!" || status=$?
    while kill -0 "$!" 2>/dev/null; do wait "$!" || :; done # a signal ends a wait before the run
    [ "$status" != 72 ] || stopped=yes                      # the run was interrupted
    [ "$status" = 0 ] || [ -n "$stopped" ] || came=found
    times >"$log.$$.after"
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$1" "$2" "$(took "$log.$$.before" "$log.$$.after")" \
        "${runs:-0}" "$came" >>"$ledger"
    [ "$came" = nothing ]
}

one() {
    mkdir -p "corpus.local/$1" "corpus.local/crashes-$1"
    is=$(state "$1") || {
        [ $? = 69 ] || return 1 # 69: a package is missing
        echo "fuzz $1: SKIPPED, it needs a package" >&2
        return 0
    }
    left=$seconds
    rest=-1
    stopped=
    trap 'stopped=yes; kill "$!" 2>/dev/null || :' INT TERM
    while [ "$left" -gt 0 ] && [ -z "$stopped" ]; do
        if [ "$mode" = until ]; then
            left=$((seconds - $(spent "$1" "$is" | cut -d' ' -f1)))
            rest=$((most - $(spent "$1" "$is" | cut -d' ' -f2)))
            [ "$left" -gt 0 ] && [ "$rest" -gt 0 ] || break
        fi
        if ! round "$1" "$is" "$left" "$rest"; then
            echo "fuzz $1: FOUND SOMETHING, log in fuzz/corpus.local/$1.log"
            tail -n 25 "corpus.local/$1.log"
            return 1
        fi
        [ "$mode" = until ] || left=0
    done
    cover=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "corpus.local/$1.log" 2>/dev/null | tail -n 1)
    spent "$1" "$is" | {
        read -r here runs all
        echo "fuzz $1: nothing found, coverage ${cover:--}; ${here} s of processor time and $runs runs as it is now," \
            "${all} s since its last find"
    }
}

jobs=${FUZZ_JOBS:-$(getconf _NPROCESSORS_ONLN)}
status=0
running=""
trap 'kill $running 2>/dev/null || :; wait; exit 130' INT TERM
while [ $# -gt 0 ]; do
    running=""
    for _ in $(seq "$jobs"); do
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
