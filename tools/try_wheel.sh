#!/usr/bin/env bash
# Installs a wheel by pip in an empty environment outside of the tree and runs quickstart, report, sweep, reproduce and proxy
# there: nothing is on the path but that environment, neither Rust nor a compiler nor git.
#
#   tools/try_wheel.sh PYTHON WHEEL [REQUIREMENT...]     such as: tools/try_wheel.sh python3.12 dist/*.whl numpy==2.0
set -euo pipefail
python=$1
wheel=$(realpath "$2")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'echo "tools/try_wheel.sh: line $LINENO fails" >&2' ERR
"$python" -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --no-input --disable-pip-version-check --only-binary :all: "$wheel" "${@:3}"
cd "$place"
alone() { env -i HOME="$place" LC_ALL=C.UTF-8 PATH="$place/venv/bin" "$@"; }

alone tcpsbed init --from quickstart
alone tcpsbed run quickstart.toml --quiet --duration "5 s" --out run
mv run/report.html first.html
alone tcpsbed report run
test -s run/summary.json
cmp run/report.html first.html
alone tcpsbed sweep quickstart.toml --quiet --duration "1 s" --over 'links.l1.rate=1 Mbit/s,2 Mbit/s' --seeds 2 --out sweep
test -s sweep/sweep.parquet
alone tcpsbed reproduce hudson2001 --short --quiet --out reproduced
test -s reproduced/hudson2001/rows.json
alone python - <<'PYTHON'
import json, socket, subprocess, time

far, near, free = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(3))
for each in (far, near, free):
    each.bind(("127.0.0.1", 0))
    each.settimeout(10)
port = free.getsockname()[1]
free.close()
command = ["tcpsbed", "proxy", "--json", "--delay", "20 ms", "--duration", "3 s", "--margin-ms", "500"]
command.append(f"{port}=127.0.0.1:{far.getsockname()[1]}")
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
    assert json.loads(proxy.stdout.readline())["event"] == "ready"
    begin = time.monotonic()
    near.sendto(b"hand", ("127.0.0.1", port))
    command, client = far.recvfrom(100)
    far.sendto(b"force", client)
    answer, took = near.recv(100), time.monotonic() - begin
    end = json.loads(proxy.stdout.read().splitlines()[-1])
assert (command, answer) == (b"hand", b"force") and took >= 0.04, (command, answer, took)
assert end["event"] == "end" and end["good"] and proxy.returncode == 0, end
PYTHON
echo "$(alone python --version), ${*:3}${3:+, }$(basename "$wheel"): quickstart, report, sweep, reproduce and proxy run"
