"""Whatever is wrong with a run folder or an argument: one message that says what to do, status 2, no traceback."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sample_run
from analysis_run import write
from command import scenario, tcpsbed

from tcpsbed import results, shipped
from tcpsbed.cli import runs
from tcpsbed.cli.failures import guarded
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.views import folder

COMMANDS = {
    "show": lambda bad, _: runs.show(bad, as_json=False),
    "report": lambda bad, _: runs.report(bad),
    "compare": lambda bad, good: runs.compare([good, bad]),
    "export": lambda bad, _: runs.export(bad, csv=True),
}
VERSION = b'{"version": 1, "versions": {"tcpsbed": "0.1.0"}, "name": "x", "world": "virtual", "seed": 1, "duration_s": 1'
DAMAGES = {
    "absent": None,
    "empty": b"",
    "half": b'{"version": 1, "na',
    "bytes": bytes(range(256)),
    "too deep": b"[" * 100_000,
    "a list": b"[]",
    "no object": b"null",
    "another version": b'{"version": 99}',
    "only a version": b'{"version": 1}',
    "flows that are none": VERSION + b', "flows": 3}',
    "a flow that is none": VERSION + b', "flows": {"kinematic": 3}}',
}


def told(command: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that must fail with status 2."""
    with pytest.raises(SystemExit) as ended:
        guarded(command)()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    return said.err


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (("flows",), 3, "flows: found 3"),
        (("flows", "kinematic"), 3, "flows.kinematic: found 3"),
        (("network",), {"l1": {}}, 'network: found {"l1": {}}'),
        (("network", 0), "x", 'network.0: found "x"'),
        (("disturbances",), 3, "disturbances: found 3"),
        (("machine",), "mine", 'machine: found "mine"'),
        (("programs",), {}, "programs.verdict is missing"),
        (("programs",), {"verdict": "good", "settings": [{}]}, "programs.settings.0.what is missing"),
        (("programs",), {"verdict": "good", "tcp": [{"side": "near"}]}, "programs.tcp.0.sent is missing"),
        (
            ("programs",),
            {"verdict": "good", "settings": [{"what": "delay", "verdict": "good", "said": None}]},
            "programs.settings.0.said: found null",
        ),
        (("stalls",), {"n": float("nan"), "longest_ms": 1, "flows": {}}, "stalls.n: found NaN"),
        (("stalls",), {"n": 1, "longest_ms": 1, "flows": {"x": {}}}, "stalls.flows.x.samples is missing"),
        (("emulator",), [{}], "emulator.0.path is missing"),
        (("outages",), [{"link": "l", "from_s": "a", "length_s": 1}], 'outages.0.from_s: found "a"'),
        (
            ("outages",),
            [{"link": "l", "from_s": float("inf"), "length_s": 1}],
            "outages.0.from_s: found Infinity",
        ),
        (("flows", "kinematic", "delay_ms", "p99"), "x", 'flows.kinematic.delay_ms.p99: found "x"'),
        (("flows", "kinematic", "loss"), [], "flows.kinematic.loss: found []"),
        (("disturbances",), [3], "disturbances.0: found 3"),
    ],
)
def test_a_summary_that_was_edited_is_told_by_file_and_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: tuple[str | int, ...], value: object, said: str
) -> None:
    file = sample_run.write(tmp_path / "bad") / "summary.json"
    whole = inner = json.loads(file.read_text())
    for name in key[:-1]:
        inner = inner[name]
    inner[key[-1]] = value
    file.write_text(json.dumps(whole))
    assert f"summary.json: {said}; allowed: " in told(lambda: runs.show(file.parent), capsys)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_summary_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: str,
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("good", "bad"):
        sample_run.write(Path(name))
    file, content = Path("bad/summary.json"), DAMAGES[damage]
    file.unlink() if content is None else file.write_bytes(content)
    said = told(lambda: COMMANDS[command](Path("bad"), Path("good")), capsys)
    assert said.startswith("tcpsbed: ") and "bad" in said and "; allowed: " in said
    assert said.count("\n") == 1


def test_a_summary_with_only_a_version_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "summary.json").write_text('{"version": 1}')
    said = told(lambda: runs.show(tmp_path), capsys)
    assert "summary.json: found no name, world, seed, duration_s, flows; allowed: " in said
    assert "run the scenario again" in said


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"t_s": 3', bytes(range(256))])
def test_a_damaged_series_is_told_by_the_report(tmp_path: Path, damage: bytes) -> None:
    sample_run.write(tmp_path / "bad")
    (tmp_path / "bad/series.json").write_bytes(damage)
    done = tcpsbed(tmp_path, "report", "bad")
    assert done.returncode == 2 and "bad/series.json" in done.stderr and "Traceback" not in done.stderr


SERVICE = {"t_s": [1, 2], "p50_ms": [1, None], "p99_ms": [1, None], "packets": [2, 1], "lost": [0, 1]}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (("services", "paths", "a", "p50_ms"), [1], "services.paths.a.p50_ms: found 1 value at 2 places"),
        (("services", "paths", "a", "p50_ms"), [1, "x"], 'services.paths.a.p50_ms.1: found "x"'),
        (("services", "paths", "a", "lost"), [0, 5], "services.paths.a.lost.1: found 5 of 1 packets"),
        (("services", "paths", "a", "lost"), [-1, 0], "services.paths.a.lost.0: found -1 of 2 packets"),
        (("services", "paths", "a"), {"t_s": [1]}, "services.paths.a.p50_ms is missing"),
        (("flows", "kinematic", "rate_bps"), [1], "flows.kinematic.rate_bps: found 1 value at 500 places"),
        (("cdf", "haptic", "delay_ms"), [1], "cdf.haptic.delay_ms: found 1 value at 101 places"),
        (("bin_s",), float("nan"), "bin_s: found NaN"),
    ],
)
def test_a_series_that_was_edited_is_told_by_file_and_key(
    tmp_path: Path, key: tuple[str, ...], value: object, said: str
) -> None:
    file = sample_run.write(tmp_path / "bad") / "series.json"
    whole = json.loads(file.read_text()) | {"services": {"span_s": 1.0, "paths": {"a": dict(SERVICE)}}}
    file.write_text(json.dumps(whole))
    assert folder.open_folder(file.parent).series == whole
    inner = whole
    for name in key[:-1]:
        inner = inner[name]
    inner[key[-1]] = value
    file.write_text(json.dumps(whole))
    with pytest.raises(DataError, match="series") as error:
        _ = folder.open_folder(file.parent).series
    assert f"series.json: {said}; allowed: " in str(error.value)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    for out in ("taken", "taken/below", "/proc/nowhere"):
        done = tcpsbed(tmp_path, "run", str(scenario(tmp_path)), "--out", out)
        assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
        assert done.stderr.startswith("tcpsbed: ")


@pytest.mark.parametrize(
    "override",
    ["name=\udcff", "seed=" + "9" * 5000, "a=" + "[" * 5000, "x\ny=3", "", "=", "duration=1e999 s"],
)
def test_odd_overrides_are_told(override: str) -> None:
    """Against the real loader: the stand-in reads no overrides as it does."""
    from tcpsbed.errors import ConfigError
    from tcpsbed.scenarios import load

    with pytest.raises(ConfigError):
        load(Path(__file__).parents[2] / "scenarios/quickstart.toml", [override])


def test_show_prints_what_the_emulator_was_set_to_and_what_it_delivered(tmp_path: Path) -> None:
    sample_run.write(tmp_path / "a", world="real")
    lines = tcpsbed(tmp_path, "show", "a").stdout.splitlines()
    (head,) = [line for line in lines if line.startswith("path ") and "set p50 ms" in line]
    assert "delivered p50 ms" in head and "lost" in head
    emulated = json.loads((tmp_path / "a/summary.json").read_text())["emulator"][0]
    row = lines[lines.index(head) + 2]
    assert row.startswith("op → cloud") and f"{emulated['set_p50_ms']:.3f}" in row


def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        ConfigError, match="is a pipe that nobody reads; allowed: a pipe with a reader, such as cat "
    ):
        results.may_write(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is a pipe that nobody reads"):
        results.write_whole(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (("key", "lab.key"), "lab.key"),
        (("init", "my.toml"), "my.toml"),
        (("new", "controller", "calm"), "calm.py"),
        (("config", "to-xlsx", "given.toml", "given.xlsx"), "given.xlsx"),
    ],
)
def test_a_file_that_does_not_fit_is_named_and_none_is_left(
    tmp_path: Path, words: tuple[str, ...], made: str
) -> None:
    (tmp_path / "given.toml").write_bytes((shipped.SCENARIOS / "quickstart.toml").read_bytes())
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tcpsbed: ") and done.stderr.count("\n") == 1, done.stderr
    assert made in done.stderr and "; allowed: " in done.stderr, done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_an_export_into_a_pipe_or_a_device_leaves_it_in_its_place(tmp_path: Path) -> None:
    """A file that is renamed over a device would take its place; a full device is told."""
    from tcpsbed.analysis import export

    write(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        writer = threading.Thread(target=export.to_csv, args=(tmp_path, pipe))
        writer.start()
        found = b""
        while writer.is_alive() or not found:
            with contextlib.suppress(BlockingIOError):
                found += os.read(reader, 1 << 20)
        writer.join()
        assert pipe.is_fifo()
        assert found.startswith(b'"time_ns"')
    finally:
        os.close(reader)
