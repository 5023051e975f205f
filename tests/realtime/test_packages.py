"""A package outside the tree, installed by pip: its code is named like what is built in, and runs in both worlds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from real_run import summary

from tcpsbed.scenarios.codes import codes

pytestmark = [pytest.mark.realtime, pytest.mark.beside]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BRINGS = {
    ("component", "smoother"): "own_component:Smoother",
    ("controller", "patient"): "own_controller:Patient",
    ("delay", "steps"): "own_delay:Steps",
    ("hook", "scaled"): "hooks/own_hook:Scaled",
    ("loss", "fading"): "own_loss:Fading",
    ("metric", "slowest"): "own_metric:Slowest",
    ("plant", "shaft"): "own_plant:Shaft",
    ("queue", "shortest"): "own_queue:Shortest",
    ("robot", "drawer"): "own_robot:Drawer",
    ("traffic", "bursts"): "own_traffic:Bursts",
    ("transport", "at-once"): "own_transport:NoMerge",
}
"""What the package has, by kind and name: examples, as its modules."""
SCENARIO = """
duration = "2 s"
[components]
tactile-operator = "desk"
srv = "edge"
smoother = { node = "edge", params = { lag = "5 ms" } }
tactile-teleoperator = { node = "kitchen", robot = "drawer" }
wheel = { kind = "tactile-teleoperator", node = "kitchen", robot = { run = "step", params = { plant = "shaft" } } }
[flows]
kinematic = { sample = "4 B", codec = "f32", to = "tactile-teleoperator" }
haptic = { source = "robot", from = "tactile-teleoperator" }
[flows.sound]
direction = "forward"
to = "tactile-teleoperator"
sample = "160 B"
rate = "50 Hz"
codec = "raw"
transport = "at-once"
[channels.both]
flows = ["kinematic", "haptic"]
transport = { kind = "telehaptic", controller = "patient", params = { queue = "2 ms" } }
[hooks.kinematics]
run = "scaled"
at = "tactile-operator"
params = { gain = 0.5 }
[links.l1]
from = "desk"
to = "edge"
rate = "5 Mbit/s"
delay = "2 ms"
jitter = { kind = "steps", params = { most = "1 ms" } }
queue = { limit = "60 kB", discipline = "shortest", params = { patience = "10 ms" } }
[links.l2]
from = "edge"
to = "kitchen"
delay = "1 ms"
loss = { kind = "fading", params = { bit_errors = 1e-3 } }
[traffic.others]
kind = "bursts"
on = "l1.forward"
params = { pause = "30 ms", packets = 12 }
[measure]
metrics = "slowest"
echo = { points = ["smoother.entry", "smoother.exit"], period = "20 ms" }
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the package."""
    pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("brought")
    modules = {
        place.partition(":")[0].rpartition("/")[2]: place.partition(":")[0] for place in BRINGS.values()
    }
    points = "".join(
        f"[tcpsbed.{kind}]\n{name} = brought.{place.rpartition('/')[2]}\n"
        for (kind, name), place in BRINGS.items()
    )
    about = {
        "METADATA": "Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": points,
        "RECORD": "",
    }
    wheel = folder / "brought-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("brought/__init__.py", "")
        for module, source in modules.items():
            file.write(EXAMPLES / f"{source}.py", f"brought/{module}.py")
        for name, text in about.items():
            file.writestr(f"brought-1.0.dist-info/{name}", text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, folder / "site", wheel], check=True)
    return folder / "site"


def told(site: Path, folder: Path, *command: str) -> str:
    """What the program says beside the package."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT / "python")])}
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("world", ["virtual", "real"])
def test_what_it_brings_runs(site: Path, tmp_path: Path, world: str) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO)
    told(site, tmp_path, "run", "s.toml", "--world", world, "--out", "out", "--no-report")
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    ran = {(kind, f"{code['name']}:{code['symbol']}") for kind, code in codes(plan) if "symbol" in code}
    brought = {(kind, f"brought.{place.rpartition('/')[2]}") for (kind, _), place in BRINGS.items()}
    assert ran == brought - {("metric", "brought.own_metric:Slowest")}
    found = summary(tmp_path / "out")
    assert found["errors"] == [] and {flow["delivered"] > 0 for flow in found["flows"].values()} == {True}
    called = {(stage["component"], stage["kind"]): stage for stage in found["stages"]}
    assert {stage["failures"] for stage in called.values()} == {0}
    assert called["smoother", "work"]["calls"] > 1000 < called["tactile-operator", "kinematics"]["calls"]
    assert [at["name"] for at in found["echo"]["kinematic"]["components"]] == ["smoother"]
    assert {(row["name"], row["of"]) for row in found["metrics"]} == {
        ("slowest", flow) for flow in found["flows"]
    }
    (others,) = found["traffic"]
    assert others["packets"] > 300
    (line,) = [link for link in found["network"] if link["name"] == "l1.forward"]
    assert line["drops"].keys() == {"managed"}, "by its patience, none by the limit"
    (line,) = [link for link in found["network"] if link["name"] == "l2.forward"]
    assert line["drops"].keys() == {"loss"}


def test_it_is_listed_with_its_name(site: Path, tmp_path: Path) -> None:
    rows = json.loads(told(site, tmp_path, "plugins", "--json"))
    listed = {(row["kind"], row["name"]) for row in rows if row["source"] == "package brought"}
    assert listed == set(BRINGS)
