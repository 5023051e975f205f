"""Hooks of every kind do the same in every world; what fails is told with its name and counted."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from virtual_run import CAPTURE, captured, simulated

from tcpsbed import library
from tcpsbed.errors import ConfigError, HookError, TcpsbedError, WorldError

ROOT = Path(__file__).resolve().parents[2]
CHAIN = """
name = "hooks"
duration = "{duration}"
[components]
tactile-operator = "a"
ms-com = "a"
srv = "b"
ss-ei = "c"
ss-com = "c"
tactile-teleoperator = "c"
[flows.kinematic]
[links.l1]
from = "a"
to = "b"
delay = "3 ms"
[links.l2]
from = "b"
to = "c"
delay = "2 ms"
"""
CAUGHT = """
[hooks.catch]
kind = "inverse_kinematics"
run = "./capture.py:Capture"
at = "tactile-teleoperator"
params = {{ path = "{path}" }}
"""
KINDS = {"built-in": "zoh", "C": "./libzoh.so:zoh", "numba": "./fast.py:hold", "class": "./zoh.py:Zoh"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the documented predictors, as far as the machine can make them, and a hook that captures."""
    for name in ("zoh.py", "fast.py"):
        shutil.copy(ROOT / "examples" / "hooks" / name, tmp_path)
    if shutil.which("cc"):
        compiled(tmp_path, (ROOT / "examples" / "hooks" / "zoh.c").read_text(), "zoh")
    (tmp_path / "capture.py").write_text(CAPTURE)
    return tmp_path


def compiled(folder: Path, source: str, name: str) -> None:
    """A C hook as a shared library."""
    (folder / f"{name}.c").write_text(source)
    header = ROOT / "python" / "tcpsbed" / "data"
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{header}", "-o", f"lib{name}.so", f"{name}.c"]
    subprocess.run(command, cwd=folder, check=True)


def scenario(folder: Path, *more: str, duration: str = "300 ms") -> str:
    """The chain with some tables, and the values that arrive written to `seen.bin`."""
    return CHAIN.format(duration=duration) + CAUGHT.format(path=folder / "seen.bin") + "\n".join(more)


def predict(code: str) -> str:
    """A predictor at the slave's edge."""
    return f'[hooks.predict]\nrun = "{code}"\nperiod = "1 ms"\n'


def need(kind: str) -> None:
    """Skips a kind of hook that the machine cannot have."""
    if kind == "numba" and importlib.util.find_spec("numba") is None:
        pytest.skip("needs numba")
    if kind == "C" and not shutil.which("cc"):
        pytest.skip("needs the command cc")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "built-in"])
def test_every_kind_of_predictor_delivers_what_the_built_in_one_does(place: Path, kind: str) -> None:
    need(kind)
    runs = {}
    for name in ("built-in", kind):
        run = simulated(place, scenario(place, predict(KINDS[name])), out=name)
        runs[name] = (captured(place / "seen.bin"), run.rows("delivered").tolist())
        stage = next(stage for stage in run.summary["stages"] if stage["kind"] == "predict")
        assert stage["calls"] > 290 and stage["failures"] == 0
        assert run.summary["errors"] == []
    values, rows = runs["built-in"]
    assert runs[kind] == (values, rows)
    assert len(values) > 290 and len(set(values)) > 250, "samples differ from one another"


@pytest.mark.realtime
@pytest.mark.beside
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in ("C", "class") else pytest.mark.slow) for kind in KINDS]
)
def test_every_kind_of_predictor_works_on_sockets(place: Path, kind: str) -> None:
    need(kind)
    simulated(place, scenario(place, duration="3 s"))
    sent = set(captured(place / "seen.bin"))
    found = real(place, scenario(place, predict(KINDS[kind]), duration="2 s"))
    assert found["errors"] == []
    stage = next(stage for stage in found["stages"] if stage["kind"] == "predict")
    assert stage["calls"] > 600 and stage["failures"] == 0
    arrived = captured(place / "seen.bin")
    assert len(arrived) > 600 and set(arrived) <= sent, "a value that nobody sent"
    assert len(set(arrived)) > 200


def real(folder: Path, text: str, status: int = 0) -> dict[str, Any]:
    """The summary of a real run of the command."""
    (folder / "scenario.toml").write_text(text)
    command = [
        sys.executable,
        "-m",
        "tcpsbed",
        "run",
        "scenario.toml",
        "--world",
        "real",
        "--out",
        "real",
        "--quiet",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150)
    assert done.returncode == status, done.stderr
    found: dict[str, Any] = json.loads((folder / "real" / "summary.json").read_text())
    return found


BAD = """
class Raises:
    def __call__(self, t_ns, index, x, other, y):
        raise ValueError("no such pose")

class Negative:
    def __call__(self, t_ns, index, x, other, y):
        return -3

class TooMuch:
    def __call__(self, t_ns, index, x, other, y):
        return len(y) + 1

class Words:
    def __call__(self, t_ns, index, x, other, y):
        return "six"

class Nothing:
    def __call__(self, t_ns, index, x, other, y):
        pass

class Beyond:
    def __call__(self, t_ns, index, x, other, y):
        y[: 2 * len(y)] = [0.0] * (2 * len(y))

class Sometimes:
    def __call__(self, t_ns, index, x, other, y):
        y[: len(x)] = x
        return len(x) if index % 10 else -1

class Fussy:
    def __init__(self, gain):
        if gain > 1:
            raise ValueError("gain above 1")

    def __call__(self, t_ns, index, x, other, y):
        return 0

class NoCall:
    pass

number = 7
"""
FAILURES = {
    "Raises": "ValueError: no such pose",
    "Negative": "said that it wrote -3 of 256 values",
    "TooMuch": "said that it wrote 257 of 256 values",
    "Words": "TypeError",
    "Nothing": "TypeError",
    "Beyond": "ValueError",
}


def bad(name: str, more: str = "") -> str:
    """A kinematics hook that misbehaves, at srv."""
    return f'[hooks.kinematics]\nrun = "./bad.py:{name}"\n{more}'


@pytest.mark.parametrize("name", FAILURES)
def test_a_hook_that_fails_is_named_and_counted(place: Path, name: str) -> None:
    (place / "bad.py").write_text(BAD)
    found = simulated(place, scenario(place, bad(name))).summary
    stage = next(stage for stage in found["stages"] if stage["kind"] == "kinematics")
    assert stage["failures"] == stage["calls"] > 290
    (error,) = found["errors"]
    assert f":{name} at srv (kinematic): " in error and FAILURES[name] in error
    assert error.endswith(f"{stage['calls']} times")
    flow = found["flows"]["kinematic"]
    assert flow["delivered"] == 0
    assert flow["drops"] == {"srv hook": stage["calls"]}


def test_a_hook_that_fails_now_and_then_loses_only_those_samples(place: Path) -> None:
    (place / "bad.py").write_text(BAD)
    found = simulated(place, scenario(place, bad("Sometimes"))).summary
    flow = found["flows"]["kinematic"]
    stage = next(stage for stage in found["stages"] if stage["kind"] == "kinematics")
    assert (stage["calls"], stage["failures"]) == (297, 30)
    assert flow["drops"] == {"srv hook": 30}
    assert 260 <= flow["delivered"] <= 267


def test_a_predictor_that_fails_is_named_and_counted(place: Path) -> None:
    (place / "bad.py").write_text(BAD)
    found = simulated(place, scenario(place, predict("./bad.py:Raises"))).summary
    stage = next(stage for stage in found["stages"] if stage["kind"] == "predict")
    assert stage["failures"] == stage["calls"] > 250
    assert [
        error
        for error in found["errors"]
        if ":Raises at ss-ei (kinematic): ValueError: no such pose" in error
    ]


@pytest.mark.realtime
@pytest.mark.beside
def test_a_real_run_goes_on_beside_a_hook_that_fails(place: Path) -> None:
    (place / "bad.py").write_text(BAD)
    found = real(place, scenario(place, bad("Sometimes"), duration="1 s"), status=1)
    stage = next(stage for stage in found["stages"] if stage["kind"] == "kinematics")
    left_out = (
        1000 - stage["calls"]
    )  # by a loop that stalled; any of these may be one of the tenth that fails
    assert stage["calls"] > 300 and stage["failures"] == pytest.approx(
        stage["calls"] / 10, abs=1 + left_out / 10
    )
    # What is in flight when a loop stalls at the end does not arrive.
    assert 200 < found["flows"]["kinematic"]["delivered"] <= stage["calls"] - stage["failures"]
    assert len(found["errors"]) == 1


@pytest.mark.needs("cc")
@pytest.mark.parametrize(
    "claim", ["out->n = out->cap + 1;", "out->cap = 1000000; out->n = 100000;"], ids=["values", "room too"]
)
def test_a_c_hook_that_says_it_wrote_too_much_is_counted(place: Path, claim: str) -> None:
    source = '#include "tcps_hook.h"\nint greedy(void *s, const tcps_in *in, tcps_out *out)\n'
    compiled(place, source + f"{{ (void)s; (void)in; {claim} return TCPS_EMIT; }}\n", "greedy")
    found = simulated(place, scenario(place, '[hooks]\nkinematics = "./libgreedy.so:greedy"\n')).summary
    stage = next(stage for stage in found["stages"] if stage["kind"] == "kinematics")
    assert stage["failures"] == stage["calls"] > 290
    assert "libgreedy.so:greedy at srv (kinematic): wrote more than there is room for" in found["errors"][0]


@pytest.mark.parametrize(
    ("hook", "kind", "words"),
    [
        ("./bad.py:Absent", ConfigError, ["hooks.kinematics", '"Absent"', "a name in ./bad.py"]),
        ("./none.py:Zoh", ConfigError, ["hooks.kinematics", "there is no such file"]),
        ("./libnone.so:f", ConfigError, ["hooks.kinematics", "there is no such file", "looked for at"]),
        ("zho", ConfigError, ["hooks.kinematics", "did you mean zoh?"]),
        (
            "./bad.py:number",
            ConfigError,
            [
                "hooks.kinematics",
                "bad.py:number: found 7, neither a class nor a Python function",
                "; allowed: ",
            ],
        ),
        (
            "os:getcwd",
            ConfigError,
            [
                "hooks.kinematics",
                "os:getcwd: found <built-in function getcwd>, neither a class",
                "; allowed: ",
            ],
        ),
        ("./bad.py:NoCall", ConfigError, ["hooks.kinematics", "bad.py:NoCall", "__call__"]),
        ("./bad.py:Fussy", ConfigError, ["hooks.kinematics", "bad.py:Fussy", "gain"]),
    ],
)
def test_a_hook_that_cannot_be_loaded_is_refused_before_the_run(
    place: Path, hook: str, kind: type[Exception], words: list[str]
) -> None:
    (place / "bad.py").write_text(BAD)
    with pytest.raises(kind) as refused:
        simulated(place, scenario(place, f'[hooks]\nkinematics = "{hook}"\n'))
    assert isinstance(refused.value, ConfigError | HookError | WorldError)
    assert [word for word in words if word not in str(refused.value)] == []


@pytest.mark.realtime
@pytest.mark.beside
def test_a_real_run_whose_hook_cannot_be_loaded_is_refused(place: Path) -> None:
    (place / "bad.py").write_text(BAD)
    (place / "scenario.toml").write_text(scenario(place, '[hooks]\nkinematics = "./bad.py:Fussy"\n'))
    command = [sys.executable, "-m", "tcpsbed", "run", "scenario.toml", "--world", "real", "--out", "real"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=150)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "node b: " in done.stderr and "bad.py:Fussy" in done.stderr and "gain" in done.stderr


@pytest.mark.needs("cc")
def test_a_symbol_that_a_library_lacks_is_named(place: Path) -> None:
    with pytest.raises(ConfigError, match=r'hooks\.kinematics.*"zoo".*libzoh\.so exports'):
        simulated(place, scenario(place, '[hooks]\nkinematics = "./libzoh.so:zoo"\n'))


def test_what_numba_cannot_compile_is_refused_with_its_words(place: Path) -> None:
    need("numba")
    (place / "odd.py").write_text("def odd(t_ns, index, x, other, state, y):\n    return open('x').read()\n")
    with pytest.raises(TcpsbedError, match=r"odd\.py:odd: numba cannot compile it: \S"):
        simulated(place, scenario(place, '[hooks]\nkinematics = "./odd.py:odd"\n'))


def test_coding_at_component_boundaries_halves_the_bytes(place: Path) -> None:
    coding = """
[hooks.pack]
kind = "code"
run = "quantise16"
at = "ms-com"
params = { resolution = 0.001 }
[hooks.unpack]
kind = "decode"
run = "dequantise16"
at = "srv"
params = { resolution = 0.001 }
"""
    simulated(place, scenario(place), out="plain")
    plain = captured(place / "seen.bin")
    run = simulated(place, scenario(place, coding), 'measure.records="packets"')
    coded = captured(place / "seen.bin")
    assert len(coded) == len(plain) > 290
    errors = [
        abs(a - b) for one, other in zip(plain, coded, strict=True) for a, b in zip(one, other, strict=True)
    ]
    assert 0 < max(errors) <= 0.0005 + 1e-6, "half a step of the code"
    sizes = {
        link["name"]: link["bytes"] / link["packets"] for link in run.summary["network"] if link["packets"]
    }
    assert sizes["l2.forward"] - sizes["l1.forward"] == pytest.approx(12), "6 values: 12 B on l1, 24 B on l2"


def test_moving_kinematics_is_one_key(place: Path) -> None:
    text = scenario(place, '[hooks.kinematics]\nrun = "pose"\ncost = "300 us"\n')
    at_srv = simulated(place, text).parts_ms("kinematic")
    at_com = simulated(place, text, 'hooks.kinematics.at="ms-com"').parts_ms("kinematic")
    links = {"ms-com -> srv": 3.0, "srv -> ss-ei": 2.0}
    assert at_srv == pytest.approx(links | {"srv": 0.3})
    assert at_com == pytest.approx(links | {"ms-com": 0.3})


def test_the_cost_of_a_predictor_takes_time(place: Path) -> None:
    text = scenario(place, predict("zoh"))
    free = simulated(place, text).delays_ms("kinematic")
    costly = simulated(place, text, 'hooks.predict.cost="250 us"').delays_ms("kinematic")
    assert costly[10:] == pytest.approx(free[10 : len(costly)] + 0.25)


TOLD = """
#include "tcps_hook.h"
#include <stdlib.h>
#include <string.h>
void *told_init(const char *params) { return strstr(params, "refuse") ? NULL : calloc(1, sizeof(double)); }
void told_free(void *state) { free(state); }
int told(void *state, const tcps_in *in, tcps_out *out) {
    double given[] = {in->now_ns, in->origin_ns, in->index, in->flow, in->present, in->n, in->n_other,
                      in->tagged, in->merging, in->allowed_bps, in->n ? in->x[0] : 0, in->n_other ? in->other[0] : 0};
    double *sum = state;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) *sum = *sum * 0.9 + (double)(i + 1) * given[i];
    if (in->index % 10 == 7) return TCPS_NOTHING;
    if (in->index % 10 == 8 && in->present) return TCPS_EMIT;
    for (out->n = 0; out->n < in->n; out->n++) out->y[out->n] = *sum * 1e-12 + out->n;
    return out->n ? TCPS_EMIT : TCPS_NOTHING;
}
int faults(void *state, const tcps_in *in, tcps_out *out) {
    if (in->index == 100) *(volatile int *)(size_t)8 = 1;
    return told(state, in, out);
}
void *faults_init(const char *params) { return told_init(params); }
"""


def own_process(code: str, more: str = "") -> str:
    """A C hook, and whether it is isolated."""
    return f'[hooks.kinematics]\nrun = "./libtold.so:{code}"\n{more}\n'


@pytest.mark.needs("cc")
@pytest.mark.parametrize("stage", ["kinematics", "predict"])
def test_a_c_hook_gives_the_same_records_in_a_process_of_its_own(place: Path, stage: str) -> None:
    """It is told what it is told in the node (but for the coded bytes of values): what it gives depends on every field."""
    compiled(place, TOLD, "told")
    hook = f'[hooks.{stage}]\nrun = "./libtold.so:told"\n' + ('period = "2 ms"\n' * (stage == "predict"))
    runs = []
    for more in ("", "isolate = true\n"):
        run = simulated(place, scenario(place, hook + more), out=f"out{len(runs)}")
        assert run.summary["errors"] == []
        runs.append((captured(place / "seen.bin"), run.summary["records_sha256"]))
    assert runs[0] == runs[1] and len(set(runs[0][0])) > 100


@pytest.mark.needs("cc")
def test_a_c_hook_that_crashes_in_a_process_of_its_own_is_named_and_the_run_goes_on(place: Path) -> None:
    compiled(place, TOLD, "told")
    found = simulated(place, scenario(place, own_process("faults", "isolate = true"))).summary
    [error] = found["errors"]
    assert "libtold.so:faults at srv (kinematic): SIGSEGV ended its process at " in error
    stage = next(stage for stage in found["stages"] if stage["kind"] == "kinematics")
    assert stage["calls"] > 290 and stage["calls"] - stage["failures"] == 100


@pytest.mark.needs("cc")
def test_a_c_hook_in_a_process_of_its_own_may_refuse_its_parameters(place: Path) -> None:
    compiled(place, TOLD, "told")
    with pytest.raises(ConfigError, match="told_init refused its parameters"):
        simulated(place, scenario(place, own_process("told", "isolate = true\nparams = { mode = 'refuse' }")))


def test_the_structures_of_a_c_hook_are_those_of_the_header() -> None:
    header = (ROOT / "python" / "tcpsbed" / "data" / "tcps_hook.h").read_text()
    for name, structure in (("tcps_in", library.In), ("tcps_out", library.Out)):
        before = header[: header.index(f"}} {name};")]
        lines = before[before.rindex("typedef struct {") :].splitlines()[1:]
        fields = [line.partition(";")[0].replace("*", " ").split()[-1] for line in lines if ";" in line]
        assert fields == [field[0] for field in structure._fields_]
    assert f"sizeof(tcps_in) == {ctypes.sizeof(library.In)}" in header
    assert f"sizeof(tcps_out) == {ctypes.sizeof(library.Out)}" in header
