"""What installed packages bring along is named like what is built in, and is listed with it."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import _tcps, door, scenarios
from tcpsbed.cli import new
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, HookError, WorldError
from tcpsbed.scenarios.codes import codes
from tcpsbed.scenarios.compile.metrics import metrics
from tcpsbed.studio import sinks
from tcpsbed.worlds import registry

POINTS = """
[tcpsbed.component]
gate = mine_door:Gate
[tcpsbed.controller]
calm = mine_door:Calm
[tcpsbed.delay]
later = mine_door:Later
[tcpsbed.hook]
stand = mine_door:Stand
[tcpsbed.hosting]
rack = tcpsbed.worlds.local:Processes
[tcpsbed.loss]
never = mine_door:Never
[tcpsbed.metric]
share = mine_door:Share
[tcpsbed.network]
wire = tcpsbed.worlds.between:Direct
[tcpsbed.plant]
slow = mine_door:Slow
[tcpsbed.queue]
last = mine_door:Last
[tcpsbed.robot]
still = mine_door:Still
[tcpsbed.sink]
drain = mine_door:Drain
[tcpsbed.traffic]
once = mine_door:Once
[tcpsbed.transport]
plain = mine_door:Plain
"""
CODE = """
import struct
import tcpsbed

HEADER = struct.Struct("!HIq")


class Stand:
    params = {"gain": tcpsbed.Param("number", 0, 2, "1", "what values are multiplied by")}

    def __init__(self, gain):
        self.gain = gain

    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = self.gain * x
        return len(x)


class Plain:
    def __init__(self, channel):
        pass

    def on_input(self, now_ns, kind, data, out):
        if kind == "sample":
            out.transmit(HEADER.pack(data.flow, data.index, data.origin_ns) + data.bytes, data.flow, data.index)
        elif kind == "datagram":
            out.deliver(*HEADER.unpack_from(data.bytes), data.bytes[HEADER.size :])


class Calm(tcpsbed.RateController):
    def on_feedback(self, now_ns, delay_ns, k, told):
        return 2


class Gate(tcpsbed.Component):
    after = "tactile-operator"

    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = x
        return len(x)


class Last(tcpsbed.QueueDiscipline):
    def enqueue(self, now_ns, packet, dropped):
        self.waiting = [*getattr(self, "waiting", []), packet.number]

    def dequeue(self, now_ns, dropped):
        return self.waiting.pop()


class Never(tcpsbed.LossModel):
    def lose(self, now_ns, packet):
        return False


class Later(tcpsbed.DelayModel):
    def delay(self, now_ns, packet):
        return 1_000_000


class Slow(tcpsbed.Plant):
    def matrices(self):
        return [[-9.0]], [9.0], [1.0]


class Share(tcpsbed.Metric):
    def of(self, run):
        return 0.5


class Drain(tcpsbed.Sink):
    def take(self, now):
        pass


class Once(tcpsbed.Source):
    def next(self):
        return None


class Still:
    def step(self, t_ns, command, sense):
        sense[:3] = 0.5
        return 3
"""
SCENARIO = """
duration = "1 s"
[components]
tactile-operator = "a"
tactile-teleoperator = { node = "b", robot = "still" }
[flows.kinematic]
source = "generated"
sample = "24 B"
codec = "f32"
transport = "plain"
[flows.haptic]
source = "robot"
sample = "12 B"
codec = "f32"
[hooks.kinematics]
run = "stand"
at = "tactile-operator"
params = { gain = 0.5 }
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package."""
    site = tmp_path / "site"
    (site / "mine_door-1.dist-info").mkdir(parents=True)
    (site / "mine_door-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: mine-door\nVersion: 1\n"
    )
    (site / "mine_door-1.dist-info" / "entry_points.txt").write_text(POINTS)
    (site / "mine_door.py").write_text(CODE)
    monkeypatch.syspath_prepend(site)
    door.installed.cache_clear()
    yield site
    door.installed.cache_clear()


def invoke(*given: str):
    return CliRunner().invoke(app, given)


def written(folder: Path, text: str = SCENARIO) -> Path:
    (folder / "s.toml").write_text(text)
    return folder / "s.toml"


def test_names_of_a_package_run_like_built_in_ones(package, tmp_path):
    file = written(tmp_path)
    scenarios.check(scenarios.load(file))
    run = tcpsbed.run(file, out=tmp_path / "out")
    assert run.summary["errors"] == [] and run.flows["kinematic"]["lost"] == 0
    assert [stage["failures"] for stage in run.summary["stages"]] == [0]


IN_SCENARIO = {
    "component": ("[components.gate]", 'node = "a"'),
    "controller": (
        "[channels.c]",
        'flows = ["kinematic", "haptic"]',
        'transport = { kind = "telehaptic", controller = "calm" }',
    ),
    "delay": ("[links.l]", 'from = "a"', 'to = "b"', 'jitter = { kind = "later" }'),
    "hook": ("[hooks.feedback]", 'run = "stand"', 'flow = "haptic"'),
    "loss": ("[links.l]", 'from = "a"', 'to = "b"', 'loss = "never"'),
    "metric": ("[measure]", 'metrics = "share"'),
    "plant": (),
    "queue": ("[links.l]", 'from = "a"', 'to = "b"', 'rate = "1 Mbit/s"', 'queue = { discipline = "last" }'),
    "robot": (),
    "traffic": ("[links.l]", 'from = "a"', 'to = "b"', "[traffic.once]", 'kind = "once"', 'on = "l"'),
    "transport": (),
}
"""What a scenario says to name the package's code of a kind."""
IN_WORLD = {"hosting": "rack+emulator", "network": "process+wire"}


@pytest.mark.parametrize("kind", door.KINDS)
def test_a_name_of_every_kind_is_found_and_listed(kind, package, tmp_path):
    ((name, point),) = door.installed(kind).items()
    symbol = point.value.partition(":")[2]
    if kind == "sink":
        assert type(sinks.opened(name)).__name__ == symbol
        with pytest.raises(ConfigError, match=name):
            sinks.opened(name[:-1])
    elif kind in IN_WORLD:
        world = registry.named(IN_WORLD[kind])
        assert getattr(world, kind).__name__ == symbol
    else:
        base = SCENARIO.replace('transport = "plain"\n', "") if kind == "controller" else SCENARIO
        if kind == "plant":
            base = base.replace('robot = "still"', 'robot = { run = "step", params = { plant = "slow" } }')
        file = written(tmp_path, base + "\n".join(IN_SCENARIO[kind]))
        scenario = scenarios.load(file)
        named = {(of, code.get("symbol")) for of, code in codes(scenarios.check(scenario))}
        assert (kind, symbol) in named | {
            ("metric", code.rpartition(":")[2]) for _, code in metrics(scenario)
        }
        # One letter less, and it is named with those that there are.
        near = re.sub(
            rf'"{name}"|(?<=\.){name}(?=\])',
            lambda found: found[0].replace(name, name[:-1]),
            file.read_text(),
        )
        file.write_text(near)
        with pytest.raises(ConfigError) as refused:
            scenarios.check(scenarios.load(file))
        assert name in str(refused.value)
    rows = json.loads(invoke("plugins", "--json", "--kind", kind).stdout)
    assert [row["name"] for row in rows if row["source"] == "package mine-door"] == [name]


def test_documentation_and_architecture_name_every_kind(root):
    page = (root / "docs" / "hooks.md").read_text()
    table = (
        (root / "ARCHITECTURE.md")
        .read_text()
        .partition("## Where to add a part")[2]
        .partition("\n## ")[0]
        .lower()
    )
    words = {"traffic": "background source", "controller": "rate controller", "hosting": "`hostings`"}
    assert [
        kind for kind in door.KINDS if f"`tcpsbed.{kind}`" not in page and f'"tcpsbed.{kind}"' not in page
    ] == []
    assert [kind for kind in door.KINDS if words.get(kind, kind) not in table] == []


def test_their_tables_check_parameters(package, tmp_path):
    with pytest.raises(
        ConfigError, match=r"hooks.kinematics.params.gain: found 9; allowed: a number from 0 to 2"
    ):
        scenarios.check(scenarios.load(written(tmp_path), ["hooks.kinematics.params.gain=9"]))


@pytest.mark.parametrize("broken", ["entry_points.txt", "METADATA"])
def test_a_package_that_cannot_be_read_is_named_once_and_passed_over(
    broken, package, tmp_path, monkeypatch, capsys
):
    about = tmp_path / "more" / "broken-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\n")
    (about / "entry_points.txt").write_text("[tcpsbed.hook]\nlost = broken:Lost\n")
    (about / broken).write_bytes(b"[x]\na=\xff\n")
    monkeypatch.syspath_prepend(tmp_path / "more")
    done = invoke("check", str(written(tmp_path)))
    rows = [row for kind in door.KINDS for row in door.installed(kind)]
    assert done.exit_code == 0 and "stand" in rows and "lost" not in rows
    (told,) = [line for line in (done.stderr + capsys.readouterr().err).splitlines() if "broken-1" in line]
    assert told.startswith(f"tcpsbed: {about} cannot be read ('utf-8' codec")
    assert "; allowed: a package that is reinstalled or removed" in told


def test_a_name_that_nobody_has_is_answered_with_theirs_too(package, tmp_path):
    with pytest.raises(ConfigError, match=r"did you mean stand\?"):
        scenarios.check(scenarios.load(written(tmp_path), ['hooks.kinematics.run="stant"']))
    with pytest.raises(ConfigError, match=r"did you mean plain\?"):
        scenarios.check(scenarios.load(written(tmp_path), ['flows.kinematic.transport="plein"']))


def test_a_network_of_a_package_makes_a_world(package):
    assert registry.named("hosts+wire").network.__name__ == "Direct"
    with pytest.raises(WorldError):
        registry.named("hosts+wires")


def test_a_hosting_and_a_network_of_a_file_make_a_world(root, monkeypatch):
    monkeypatch.chdir(root / "examples")
    world = registry.named("./own_hosting.py:Pinned+./own_network.py:Alone")
    assert (world.hosting.name, world.network.name) == ("pinned", "alone")
    with pytest.raises(WorldError, match=r"which is no hosting; allowed: class Alone\(Hosting\) with launch"):
        registry.named("./own_network.py:Alone+emulator")


def test_built_in_names_do_not_look_for_packages(root):
    code = (
        "import sys; from tcpsbed import scenarios; "
        "scenarios.check(scenarios.load('scenarios/dumbbell-udp.toml')); "
        "sys.exit('importlib.metadata' in sys.modules and __import__('tcpsbed.door').door.installed.cache_info().misses)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_plugins_lists_what_there_is_with_its_source(package, tmp_path):
    rows = json.loads(invoke("plugins", "--json").stdout)
    found = {(row["kind"], row["name"]): row["source"] for row in rows}
    assert found["transport", "udp"] == found["hook", "zoh"] == found["queue", "codel"] == "built in"
    assert (
        found["device", "evdev"] == found["robot", "mujoco-arm"] == found["network", "emulator"] == "built in"
    )
    assert found["controller", "calm"] == found["network", "wire"] == "package mine-door"
    kinds = {row["kind"] for row in rows}
    assert kinds >= {*door.KINDS, "device", "predictor", "world", "playout", "delay"}
    assert [row["name"] for row in rows if not row["doc"]] == [], "each says what it is"
    assert "evdev" in invoke("plugins", "--kind", "device").stdout
    example = Path(__file__).resolve().parents[2] / "examples" / "own_controller.toml"
    rows = json.loads(invoke("plugins", "--json", "--kind", "controller", "--scenario", str(example)).stdout)
    assert [row["name"] for row in rows] == ["gcc", "calm", "Patient"] and rows[2]["source"].endswith(
        "own_controller.py"
    )
    assert "own_controller.py" in invoke("plugins", "--scenario", str(example)).stdout
    refused = invoke("plugins", "--kind", "hok")
    assert (
        refused.exit_code == 2 and "allowed: component, controller, delay, device, hook, " in refused.stderr
    )


@pytest.mark.slow
def test_new_writes_what_runs_and_passes_its_test(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind in new.KINDS:
        name = f"my_{kind}"
        done = invoke("new", kind, name)
        assert done.exit_code == 0 and f"{name}.py, " in done.stdout
        assert {f"{name}.py", f"{name}.toml", f"test_{name}.py"} <= {file.name for file in tmp_path.iterdir()}
        kept = (tmp_path / f"{name}.py").read_text()
        assert f"class My{kind.title()}" in kept and kept.count(f"My{kind.title()}") == 1
        assert ".c." not in kept, "what is not written is not named"
        assert not re.search(r"own[_-]|examples", (tmp_path / f"{name}.toml").read_text())
        again = invoke("new", kind, name)
        assert again.exit_code == 2
        assert "exists already; allowed: another name; nothing was written" in again.stderr
        assert (tmp_path / f"{name}.py").read_text() == kept
    environment = os.environ | {"PYTHONPATH": str(Path(tcpsbed.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    tried = subprocess.run(
        [*command, str(tmp_path)], cwd=elsewhere, env=environment, capture_output=True, text=True
    )
    assert invoke("check", "my_queue.toml").stderr == "", "no warning of a queue that lets some go first"
    assert tried.returncode == 0 and f"{len(new.KINDS)} passed" in tried.stdout, tried.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("quue", "x"),
            'new: KIND: found "quue" (did you mean queue?); allowed: component, controller, delay, device, hook, ',
        ),
        (("robot", "My-Robot"), 'NAME: found "My-Robot"; allowed: lowercase letters'),
    ],
)
def test_new_refuses_what_it_cannot_write(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("new", *given)
    assert done.exit_code == 2 and said in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("class", "a word of Python's own"),
        ("none", "a word of Python's own"),
        ("json", "a module of Python's own"),
        ("numpy", "a module that is installed"),
        ("tcpsbed", "a module that is installed"),
    ],
)
def test_new_refuses_names_that_hide_a_module_or_cannot_be_one(name, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = invoke("new", "robot", name)
    told = f'NAME: found "{name}", {found}; allowed: another name, such as my_{name}'
    assert refused.exit_code == 2 and told in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_package_of_the_page_is_one(root, tmp_path):
    page = (root / "docs" / "hooks.md").read_text()
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "mypackage" / "__init__.py").touch()
    for file in ("pyproject.toml", "mypackage/rules.py"):
        (tmp_path / file).write_text(re.search(rf"`{file}`\n\n```\w+\n(.*?)```", page, re.S)[1])
    described = [sys.executable, "-c", "import setuptools; setuptools.setup()", "--quiet", "egg_info"]
    subprocess.run(described, cwd=tmp_path, check=True)
    run = written(tmp_path, SCENARIO.replace('"stand"', '"steady"').replace("gain = 0.5", "least = 1e9"))
    run.write_text(run.read_text().replace('"plain"', '"udp"').replace('"still"', '"wall_mass"'))
    site = os.pathsep.join([str(tmp_path), str(Path(tcpsbed.__file__).parents[1])])
    for command in (["check", "s.toml"], ["run", "s.toml", "--out", "out"], ["plugins", "--kind", "hook"]):
        done = subprocess.run(
            [sys.executable, "-m", "tcpsbed", *command],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": site},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert re.search(r"steady +package mypackage +mypackage.rules:Steady", done.stdout)


def test_a_group_that_nothing_looks_for_is_told(package):
    file = package / "mine_door-1.dist-info" / "entry_points.txt"
    file.write_text(POINTS + "[tcpsbed.qeue]\nlost = mine_door:Last\n[tcpsbed]\nbare = mine_door:Last\n")
    told = invoke("plugins").stderr.splitlines()
    assert len(told) == 2 and "allowed: tcpsbed.component, " in told[1]
    assert told[0].startswith(
        'tcpsbed: package mine-door: found the entry point group "tcpsbed.qeue", which tcpsbed does not read (lost) '
        "(did you mean tcpsbed.queue?); allowed: "
    )


def test_a_key_without_its_unit_is_told(tmp_path):
    code = CODE.replace(
        '"gain": tcpsbed.Param("number", 0, 2, "1"', '"gain": tcpsbed.Param("ns", 0, 2, "1 ns"'
    )
    (tmp_path / "mine_door.py").write_text(code)
    text = SCENARIO.replace('"stand"', '"./mine_door.py:Stand"').replace('"plain"', '"udp"')
    with pytest.raises(HookError) as refused:
        scenarios.check(scenarios.load(written(tmp_path, text.replace('"still"', '"wall_mass"'))))
    said = 'Stand.params["gain"]: found a key without its unit "ns"; allowed: "gain_ns", which a scenario writes as gain'
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "found", "less", "allowed"),
    [
        ("hook", "__call__(self, t_ns, index, x, other, y)", "__call__(self, t_ns, x)", 5),
        ("robot", "step(self, t_ns, command, sense)", "step(self, command)", 3),
        (
            "transport",
            "on_input(self, now_ns, kind, data, out)",
            "on_input(self, now_ns, kind, data, out, more)",
            4,
        ),
        ("controller", "on_feedback(self, now_ns, delay_ns, k, told)", "on_feedback(self, now_ns)", 4),
        ("component", "__call__(self, t_ns, index, x, other, y)", "__call__(self, x)", 5),
        ("queue", "dequeue(self, now_ns, dropped)", "dequeue(self)", 2),
        ("loss", "lose(self, now_ns, packet)", "lose(self, packet)", 2),
        ("traffic", "next(self)", "next(self, now_ns)", 0),
        ("metric", "of(self, run)", "of(self)", 1),
        ("plant", "matrices(self)", "matrices(self, period_ns)", 0),
    ],
)
def test_a_method_that_takes_too_few_or_too_many_is_told_before_the_run(
    kind, found, less, allowed, package, tmp_path, monkeypatch
):
    monkeypatch.delitem(sys.modules, "mine_door", raising=False)
    code = package / "mine_door.py"
    (name, point) = next(iter(door.installed(kind).items()))
    head, symbol, rest = CODE.partition(f"class {point.value.partition(':')[2]}")
    code.write_text(head + symbol + rest.replace(found, less, 1))
    base = SCENARIO.replace('transport = "plain"\n', "") if kind == "controller" else SCENARIO
    if kind == "plant":
        base = base.replace('robot = "still"', 'robot = { run = "step", params = { plant = "slow" } }')
    file = written(tmp_path, base + "\n".join(IN_SCENARIO[kind]))
    with pytest.raises(ConfigError) as refused:
        scenarios.check(scenarios.load(file))
    taken = less if kind == "metric" else less.replace("self, ", "").replace("self", "")
    said = f"{taken} is called with {allowed} argument{'' if allowed == 1 else 's'}; allowed: def {found}"
    assert said.replace(" k, ", " value, ") in str(refused.value), (name, str(refused.value))


def test_a_table_that_is_read_again_takes_no_more_memory() -> None:
    table = json.dumps([tcpsbed.Param("number", 0, 1, "0.5", "a share").row("share")])

    def peak_kb(times: int) -> int:
        for _ in range(times):
            _tcps.complete(table, "{}")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = peak_kb(1)
    assert peak_kb(20_000) - before < 2_000, "100 B a time"
