#!/usr/bin/env bash
# Builds the wheel for this processor into dist/, looks into it, and tries it in empty environments outside of the tree: with every
# Python 3.11 to 3.14 that is on the path, with the lowest versions of what it needs, and boards whose firmware it holds, compiled
# there for this machine and for QEMU where the tools for that are.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
# zig links against the glibc of manylinux_2_28, whichever is here; auditwheel looks at what was linked.
tools=$PWD/target/wheel-tools
key=$(sha256sum <tools/wheel.txt)
if [ "$(cat "$tools/stamp" 2>/dev/null)" != "$key" ]; then
  .venv/bin/python -m venv --clear "$tools"
  "$tools/bin/pip" install --quiet --no-input --disable-pip-version-check --require-hashes -r tools/wheel.txt
  echo "$key" >"$tools/stamp"
fi
rm -f dist/*.whl
# Optimised across crates: 8 % less time in simulations, and minutes more of the compiler's. Messages of panics name source files: without the folders of this machine.
RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/tcpsbed" \
  CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
  CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/wheel" PATH=$tools/bin:$PATH .venv/bin/maturin build --release --locked --quiet \
  --zig --target "$(rustc -vV | sed -n 's/^host: //p')" --compatibility manylinux_2_28 --out dist
wheel=$(echo "$root"/dist/tcpsbed-*.whl)
"$tools/bin/auditwheel" show "$wheel" | grep -o '"manylinux_2_28_[a-z0-9_]*"' | sort -u
.venv/bin/python tools/licences.py --wheel "$wheel"

for name in 3.11 3.12 3.13 3.14; do
  if "python$name" -c 'import venv, ensurepip' 2>/dev/null; then tools/try_wheel.sh "python$name" "$wheel"; fi
done
# shellcheck disable=SC2046
tools/try_wheel.sh .venv/bin/python "$wheel" $(tools/lowest.sh --pins)

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --no-input --disable-pip-version-check \
  --constraint tools/requirements.in "$wheel"
cp scenarios/board.toml "$place"
cd "$place"
unset TCPSBED_FIRMWARE
export XDG_CACHE_HOME=$place/cache # nothing that was compiled before
venv/bin/tcpsbed init trial.toml
venv/bin/tcpsbed check trial.toml
venv/bin/tcpsbed run trial.toml --out trial --quiet
test -s trial/summary.json && test -s trial/report.html
venv/bin/tcpsbed init --from own_robot # an example, with its robot in Python and its recording
venv/bin/tcpsbed run own_robot.toml --out own_robot --quiet --duration "1 s"
venv/bin/tcpsbed init --from console-arm && test -s console.toml
venv/bin/tcpsbed docs scenario | cmp - "$root/docs/scenario.md"
(cd "$root" && .venv/bin/python -c 'from tcpsbed import shipped; print(*shipped.listed(), *shipped.pages())') >shipped.tree
venv/bin/python -c 'from tcpsbed import shipped; print(*shipped.listed(), *shipped.pages())' | diff - shipped.tree
cmp "$root/crates/tcps-control/include/tcps_hook.h" \
  "$(venv/bin/python -c 'import tcpsbed; print(tcpsbed.__path__[0])')/data/tcps_hook.h" # a link in the tree, a file in a wheel
venv/bin/tcpsbed reproduce --list >/dev/null
venv/bin/python -c 'from tcpsbed.lab.reproduce import expected, works; [expected.load(w.name) for w in works.WORKS]'

# answered TARGET FOLDER: whether all boards of a run are still there and have answered, and what there is of their firmware.
answered() {
  venv/bin/python - "$@" <<'PYTHON'
import json, pathlib, sys
from tcpsbed.worlds import firmware

target, folder = sys.argv[1:]
told = json.loads((pathlib.Path(folder) / "summary.json").read_text())
boards = {board["component"]: board for board in told["boards"]}
program = firmware.built(target)
assert firmware.sources().is_relative_to(sys.prefix), firmware.sources()
assert program.is_relative_to(pathlib.Path.cwd()), program
assert set(boards) == {"ms-embsys", "ss-embsys"} and not told["errors"], told["errors"]
for name, board in boards.items():
    # QEMU has no core of its own here: on a busy machine its answers may come too late to count, however sound the image
    # is. Firmware that was compiled for this machine answers there as well.
    least = 0.5 * board["sent"] if target == "host" else 50
    assert board["gone"] is None and board["sent"] > 100 and board["answered"] > least, (name, board)
print(f"Boards of the wheel's own firmware ({program.name}) answered:", {name: b["answered"] for name, b in boards.items()})
PYTHON
}

for target in host qemu; do
  lack=$(venv/bin/python -c "from tcpsbed.worlds import firmware; print(firmware.missing('$target') or '')")
  if [ -n "$lack" ]; then
    echo "Boards with firmware \"$target\" were not tried: it needs $lack"
    continue
  fi
  venv/bin/tcpsbed run board.toml --world real --out "board-$target" --quiet --duration "3 s" \
    --set "components.ms-embsys.board.firmware=$target" --set "components.ss-embsys.board.firmware=$target" \
    --set 'flows.kinematic.rate="100 Hz"' --set 'flows.haptic.rate="100 Hz"' --set real.realtime=false
  answered "$target" "board-$target"
done
echo "The wheel works in an empty environment: $wheel ($(du -h "$wheel" | cut -f1))"
