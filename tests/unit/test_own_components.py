"""Kinds of components of the user's: where they stand, what runs at them in both worlds, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from config_tools import CHAIN, ROOT, compiled, ways

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis import signals
from tcpsbed.errors import ConfigError, TcpsbedError

CODE = """
import tcpsbed
class Twice(tcpsbed.Component):
    "Doubles what passes it."
    after = "srv"
    params = {"gain": tcpsbed.Param("number", 0, 9, "2", "what values are multiplied by")}
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = self.gain * x
        return len(x)
class Held(tcpsbed.Component):
    after = {"backward": "ss-com"}
    run = "zoh"
class InC(tcpsbed.Component):
    after = "srv"
    params = {"gain": tcpsbed.Param("number", 0, 9, "2", "what values are multiplied by")}
    run = "./libtwice.so:twice"
class Compiled(tcpsbed.Component):
    after = "srv"
    run = "./mine.py:twice"
def twice(t_ns, index, x, other, state, y):
    for i in range(len(x)):
        y[i] = 2 * x[i]
    return len(x)
class Fails(Twice):
    def __call__(self, t_ns, index, x, other, y):
        raise ValueError("boom")
class Nowhere(Twice):
    after = "svr"
class Last(Twice):
    after = {"forward": "tactile-teleoperator"}
class Unsaid(tcpsbed.Component):
    def __call__(self, t_ns, index, x, other, y):
        return 0
class Silent(tcpsbed.Component):
    after = "srv"
class Lost(Silent):
    run = "zooh"
class Plain:
    after = "srv"
"""
SCENARIO = """
duration = "1 s"
[components]
tactile-operator = "a"
srv = "b"
own = { kind = "./mine.py:Twice", node = "b", cost = "100 us" }
tactile-teleoperator = { node = "c", robot = "wall_mass" }
[flows.kinematic]
source = { recording = "motion.csv", repeat = "loop" }
codec = "f64"
[links]
ab = { from = "a", to = "b", delay = "2 ms" }
bc = { from = "b", to = "c", delay = "1 ms" }
[measure]
records = "samples"
signals = ["own.entry", "own.exit"]
echo = { points = ["own.entry", "own.exit"], period = "20 ms" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "a: b").mkdir()
    for file in ("broken.py", "a: b/broken.py"):
        (tmp_path / file).write_text("1 / 0\nclass Twice:\n    pass\n")
    (tmp_path / "motion.csv").write_text(
        "t,x\n" + "".join(f"{i / 100},{i / 1000 % 0.01}\n" for i in range(100))
    )
    (tmp_path / "s.toml").write_text(SCENARIO)
    return tmp_path


def passed(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Values that entered the component, and those that left it, of the same samples."""
    entry, left = (signals.read(folder, f"own.{end}", "kinematic") for end in ("entry", "exit"))
    both, first, second = np.intersect1d(entry.numbers, left.numbers, return_indices=True)
    assert len(both) > 300
    return entry.values[first], left.values[second]


def test_it_stands_where_its_class_says(folder: Path) -> None:
    def of(**kinds: str) -> dict[str, list[str]]:
        own = "".join(f'{id} = {{ kind = "./mine.py:{kind}", node = "c" }}\n' for id, kind in kinds.items())
        return ways(compiled(folder, CHAIN.replace("[components.t", f"{own}[components.t")))

    found = of(held="Held", twice="Twice", other="Compiled")
    assert found["kinematic"] == [
        "tactile-operator", "ms-embsys", "ms-com", "srv", "twice", "other", "ss-ei", "ss-com", "ss-embsys",
        "tactile-teleoperator",
    ]  # fmt: skip
    back = ["tactile-teleoperator", "ss-embsys", "ss-com", "held", "srv", "twice", "other", "ms-ei", "ms-com"]
    assert found["haptic"][:9] == back
    with pytest.raises(
        ConfigError,
        match=r'found 2 components for one place on its path \(one, two\); allowed: via = \["one"\]',
    ):
        of(one="Twice", two="Twice")


def test_one_that_does_not_say_how_many_values_it_wrote_is_told(folder: Path) -> None:
    code = "import tcpsbed\nclass Mute(tcpsbed.Component):\n    after = 'srv'\n"
    (folder / "mute.py").write_text(
        code + "    def __call__(self, t_ns, index, x, other, y):\n        y[:3] = x\n"
    )
    run = tcpsbed.run(folder / "s.toml", set=['components.own.kind="./mute.py:Mute"'], out=None)
    said = "__call__() returned None; allowed: how many values it wrote into y, such as return len(x), or 0"
    assert any(said in error and "mute.py:Mute" in error for error in run.summary["errors"]), run.summary[
        "errors"
    ]


@pytest.mark.parametrize("kind", ["Twice", "InC", "Compiled"])
def test_samples_pass_its_code_and_its_time_is_told(folder: Path, kind: str) -> None:
    """A class, and one that names a function of C or of numba."""
    if kind == "Compiled":
        pytest.importorskip("numba")
    if kind == "InC":
        built(folder)
    run = tcpsbed.run(folder / "s.toml", set=[f'components.own.kind="./mine.py:{kind}"'], out=folder / "run")
    came, left = passed(folder / "run")
    assert np.array_equal(left, 2 * came) and run.summary["errors"] == []
    (stage,) = run.summary["stages"]
    assert (stage["component"], stage["kind"], stage["failures"]) == ("own", "work", 0)
    (echo,) = run.summary["echo"]["kinematic"]["components"]
    assert echo["name"] == "own" and echo["latency_ms"]["mean"] == pytest.approx(0.1)
    (split,) = [at for at in run.summary["split"]["kinematic"]["components"] if at["component"] == "own"]
    assert split["working_ms"] == pytest.approx(0.1)
    assert [at["latency_ms"]["mean"] for at in run.summary["path"]["kinematic"] if at["name"] == "own"] == [
        pytest.approx(0.1)
    ]


def built(folder: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    source = (
        '#include "tcps_hook.h"\n#include <stdlib.h>\n#include <string.h>\n'
        "void *twice_init(const char *params) { double *gain = malloc(sizeof *gain);\n"
        '*gain = atof(strstr(params, "gain\\":") + 6); return gain; }\n'
        "int twice(void *gain, const tcps_in *in, tcps_out *out) {\n"
        "for (out->n = 0; out->n < in->n; out->n++) out->y[out->n] = *(double *)gain * in->x[out->n];\n"
        "return TCPS_EMIT; }\nvoid twice_free(void *gain) { free(gain); }\n"
    )
    (folder / "twice.c").write_text(source)
    include = ROOT / "python" / "tcpsbed" / "data"
    command = ["cc", "-shared", "-fPIC", "-I", include, "-o", folder / "libtwice.so", folder / "twice.c"]
    subprocess.run(command, check=True)


def test_its_parameters_are_those_of_its_table(folder: Path) -> None:
    tcpsbed.run(folder / "s.toml", set=["components.own.params={ gain = 3 }"], out=folder / "run")
    came, left = passed(folder / "run")
    assert np.array_equal(left, 3 * came)


def test_one_that_fails_is_told_with_file_and_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    run = tcpsbed.run("s.toml", set=['components.own.kind="./mine.py:Fails"'], out="run")
    (error,) = run.summary["errors"]
    assert "mine.py:Fails at own" in error and "ValueError: boom, at mine.py:26 in __call__" in error, error


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["kind='./mine.py:Nowhere'"], "found after = 'svr' in Nowhere (did you mean srv?); allowed: after = one of "),
        (["kind='./mine.py:Nowhere'"], "(did you mean srv?)"),
        (["kind='./mine.py:Last'"], "found after = {'forward': 'tactile-teleoperator'} in Last"),
        (["kind='./mine.py:Unsaid'"], "components.own.kind: found after = None in Unsaid; allowed: after = one of"),
        (["kind='./mine.py:Silent'"], "has no method __call__; allowed: def __call__(self, t_ns, index, x, other, y)"),
        (
            ["kind='./mine.py:Lost'"],
            'found "./mine.py:Lost", at whose run: found "zooh" (did you mean zoh?); allowed: a built-in hook: ',
        ),
        (["kind='./mine.py:Plain'"], 'which is not a kind of component; allowed: a class of Python such as class Plain('),
        (["kind='./broken.py:Twice'"], 'found "./broken.py:Twice": the module cannot be imported: ZeroDivisionError: '),
        (["kind='./a: b/broken.py:Twice'"], 'b/broken.py:Twice": the module cannot be imported: ZeroDivisionError: '),
        (["kind='./mine.py:Twise'"], 'found "Twise" (did you mean Twice or twice?); allowed: a name in ./mine.py: '),
        (["kind='./libmine.so:f'"], 'class f(tcpsbed.Component), as tcpsbed docs own-parts shows, with run = "./libmine.so'),
        (["kind='sv'"], '(did you mean srv?); allowed: "tactile-operator"'),
        (["params.gain=10"], "components.own.params.gain: found 10; allowed: a number from 0 to 9"),
        (["params.gian=1"], 'components.own.params: found "gian", which is not a parameter of Twice; allowed: gain'),
        (["kind='srv'", "params.gain=1"], 'found params of the built-in "srv", which takes none; allowed: no params'),
        (["robot='arm'"], "found a robot at a ./mine.py:Twice; allowed: a robot at a tactile-teleoperator"),
        (["board='host'"], "found a board at ./mine.py:Twice; allowed: a board at ms-embsys"),
        (["via"], 'found "./mine.py:Twice", but no flow of values passes the component own; allowed: '),
        (["supervisor"], "components.own.kind: found the code of ./mine.py:Twice behind the supervisor"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_key_and_remedy(folder: Path, overrides: list[str], said: str) -> None:
    sets = [f"components.own.{one}" for one in overrides if "=" in one]
    if overrides == ["via"]:
        sets = ['flows.kinematic.path=["tactile-operator", "srv", "tactile-teleoperator"]']
    if overrides == ["supervisor"]:
        edge = SCENARIO.replace("own =", 'ss-ei = "b"\nown =')
        guard = '[hooks.guard]\nrun = "supervisor"\nkind = "predict"\nat = "ss-ei"\nflow = "kinematic"\n'
        (folder / "s.toml").write_text(f'{edge}{guard}period = "1 ms"\nparams = {{ start = [0] }}\n')
        (folder / "mine.py").write_text(f"{CODE}class Behind(Twice):\n    after = 'ss-ei'\n")
        sets, said = ["components.own.kind='./mine.py:Behind'"], said.replace("Twice", "Behind")
    with pytest.raises(TcpsbedError) as refused:
        scenarios.check(scenarios.load(folder / "s.toml", sets))
    assert said in str(refused.value), str(refused.value)
