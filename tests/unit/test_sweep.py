"""Sweeps: grid, resume, failures, intervals across seeds, figure and table."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from command import scenario, start, tcpsbed
from typer.testing import CliRunner

from tcpsbed import shipped
from tcpsbed.analysis import machine
from tcpsbed.analysis.stats import Interval
from tcpsbed.campaign import again, grid, page, results, survey
from tcpsbed.campaign.design import axis as axis_of
from tcpsbed.campaign.results import Group
from tcpsbed.campaign.survey import Survey
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError
from tcpsbed.executors import build
from tcpsbed.results import marker
from tcpsbed.views.media import VARIANT
from tcpsbed.views.metric import metric
from tcpsbed.views.numbers import half_shown, ms, percent
from tcpsbed.views.spread import UNCHANGED

OVER = ("--over", "delay_ms=1,4", "--over", 'label="a","b"')


def sweep(folder: Path, *more: str, seeds: int = 2) -> tuple[int, str, str]:
    """Runs the sweep of these tests."""
    done = tcpsbed(
        folder, "sweep", "short.toml", *OVER, "--seeds", str(seeds), "--jobs", "2", "--out", "out", *more
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished sweep: its working folder and what it printed."""
    folder = tmp_path_factory.mktemp("swept")
    scenario(folder)
    status, printed, said = sweep(folder)
    assert status == 0, said
    return folder, printed


def test_axes_split_at_commas_outside_quotes_and_brackets() -> None:
    assert grid.axis("links.l1.rate=1 Mbit/s, 1.5 Mbit/s").values == ("1 Mbit/s", "1.5 Mbit/s")
    assert grid.axis('x=["a,b", 2],{c = 1, d = 2},"e,f"').values == ('["a,b", 2]', "{c = 1, d = 2}", '"e,f"')
    for bad in ("x", "=1", "x=", "x=1,,2", "x=1,1"):
        with pytest.raises(ConfigError):
            grid.axis(bad)


def test_the_seed_is_no_axis():
    with pytest.raises(
        ConfigError, match=r'"seed=5,6": every combination .*allowed: --seeds 10, .*--set seed=5'
    ):
        grid.axis("seed=5,6")


def test_an_axis_is_numeric_only_with_one_unit() -> None:
    assert grid.axis("r=1 Mbit/s,1.5 Mbit/s").numbers() == ([1.0, 1.5], "Mbit/s")
    assert grid.axis('r="1 Mbit/s","2 Mbit/s"').numbers() == ([1.0, 2.0], "Mbit/s")
    assert grid.axis("r=500 kbit/s,1 Mbit/s").numbers() is None
    assert grid.axis("q=red,codel").numbers() is None


def test_every_combination_runs_with_the_same_seeds() -> None:
    axes = [grid.axis("a=1,2"), grid.axis("b=x,y")]
    found = grid.cells(axes, [5, 6])
    assert len(found) == 8
    assert {cell.values: [c.seed for c in found if c.values == cell.values] for cell in found} == {
        (a, b): [5, 6] for a in "12" for b in "xy"
    }


def test_without_a_rule_a_sweep_looks_after_two_seeds_and_at_the_end(tmp_path: Path) -> None:
    """Whether seeds change anything is known from two."""
    for seeds, looks in (((1,), [1]), ((1, 2), [2]), ((1, 2, 3, 4, 5, 6, 7), [2, 7])):
        assert Survey(tmp_path / "a.toml", (), seeds, (), "virtual", tmp_path).looks() == looks


def test_a_cell_is_named_by_all_that_its_result_depends_on() -> None:
    base = grid.key("text", ["a=1"], "virtual", "0.1.0")
    others = [
        grid.key("other", ["a=1"], "virtual", "0.1.0"),
        grid.key("text", ["a=2"], "virtual", "0.1.0"),
        grid.key("text", ["a=1"], "real", "0.1.0"),
        grid.key("text", ["a=1"], "virtual", "0.2.0"),
    ]
    assert len({base, *others}) == 5 and base == grid.key("text", ["a=1"], "virtual", "0.1.0")


@pytest.mark.parametrize(
    "named, file",
    [("./hold.py:Hold", "hold.py"), ("my.hold:Hold", "my/hold.py"), ("hold:Hold", "hold/__init__.py")],
)
def test_code_that_was_edited_makes_other_cells(tmp_path: Path, named: str, file: str) -> None:
    def keys() -> list[str]:
        found = Survey(tmp_path / "short.toml", (), (1, 2), (), "virtual", tmp_path / "out")
        return [job.key for job in found.jobs()]

    text = '[components]\nms-com = "a"\nss-com = "b"\n[flows.kinematic]\n[hooks.hold]\nkind = "predict"\n'
    scenario(tmp_path, text + f'run = "{named}"\nat = "ss-com"\n')
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("class Hold: ...\n")
    before = keys()
    assert before == keys()
    (tmp_path / file).write_text("class Hold:\n    edited = True\n")
    assert not set(before) & set(keys())


def test_modules_that_code_imports_make_other_cells(tmp_path: Path) -> None:
    """Beside it, through others, in packages; not those that nobody imports."""
    sources = {
        "hold.py": "import numpy as np\nfrom helper import gain\n\n\nclass Hold: ...\n",
        "helper.py": "def gain():\n    from pkg.deep import Gain as gain\n    return gain\n",
        "pkg/__init__.py": "",
        "pkg/deep.py": "from . import other\n",
        "pkg/other.py": "Gain = 1\n",
        "unused.py": "x = 1\n",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    text = '[components]\nms-com = "a"\nss-com = "b"\n[flows.kinematic]\n[hooks.hold]\nkind = "predict"\n'
    file = scenario(tmp_path, text + 'run = "./hold.py:Hold"\nat = "ss-com"\n')

    def key() -> str:
        return Survey(file, (), (1,), (), "virtual", tmp_path / "out").jobs()[0].key

    known = [key()]
    for name in sources:
        (tmp_path / name).write_text(sources[name] + "# edited\n")
        known.append(key())
    assert known[-1] == known[-2] and len(set(known)) == len(sources)


@pytest.mark.parametrize("changed", ["_tcps.so", "data/web.json", "numpy", "mujoco", "ns3/src/main.cc"])
def test_all_that_runs_a_cell_makes_other_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """The native module, files of the package, packages that compute, and ns-3's part where that is the network."""
    for file in ("package/executors/build.py", "package/data/web.json", "_tcps.so", "ns3/src/main.cc"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("one")
    monkeypatch.setattr(build, "__file__", str(tmp_path / "package/executors/build.py"))
    monkeypatch.setattr("tcpsbed._tcps.__file__", str(tmp_path / "_tcps.so"))
    monkeypatch.setenv("TCPSBED_NS3", str(tmp_path / "ns3"))

    def builds() -> list[str]:
        build.build.cache_clear()
        return [build.build(ns3) for ns3 in (False, True)]

    first = builds()
    (tmp_path / "package/__pycache__").mkdir()
    (tmp_path / "package/__pycache__/build.pyc").write_text("compiled")
    assert builds() == first
    if "." in changed:
        (tmp_path / changed if changed[0] in "_n" else tmp_path / "package" / changed).write_text("another")
    else:
        of = machine._version
        monkeypatch.setattr(machine, "_version", lambda part: "9" if part == changed else of(part))
    same = [a == b for a, b in zip(builds(), first, strict=True)]
    build.build.cache_clear()
    assert same == [changed.startswith("ns3"), False]


def test_intervals_across_seeds_and_paired_differences() -> None:
    """t(0.975, 2) = 4.3027: three seeds; what they share cancels from the difference."""
    noise = {1: 0.0, 2: 1.5, 3: 2.0}
    x = metric("haptic.loss").column
    base = Group(("a",), "haptic", {seed: {"loss": 1.0 + n} for seed, n in noise.items()})
    more = {seed: {"loss": 11.0 + n} for seed, n in noise.items()} | {4: {"loss": 99.0}}
    other = Group(("b",), "haptic", more)
    four = {1: {"loss": 1.0}, 2: {"loss": 2.0}, 3: {"loss": 3.0}, 4: {"loss": None}}
    found = Group((), "haptic", four).mean(x)
    assert (found.n, found.mean, found.half) == (3, 2.0, pytest.approx(4.3027 / math.sqrt(3), rel=1e-4))
    difference = other.against(base, x)
    assert (difference.n, difference.mean, difference.half) == (3, 10.0, 0.0)
    assert Group((), "haptic", {1: {"loss": None}}).mean(x) is None


def test_an_interval_of_a_percentile_is_as_wide_as_its_bin() -> None:
    """Seeds that differ by less than a bin of the histogram show one value: that is no interval of width 0."""
    late, mean = (metric(f"haptic.delay_ms.{key}").column for key in ("p99", "mean"))
    rows = [
        {
            "a": value,
            "seed": seed,
            "flow": "haptic",
            "delay_p99_ms": delay,
            "delay_mean_ms": 5.0,
            "records_sha256": f"{seed}",
        }
        for value, delay in (("1", 1024.0), ("2", 2048.0))
        for seed in (1, 2)
    ]
    first, second = results.groups(rows, (grid.axis("a=1,2"),))["haptic"]
    assert first.mean(late) == Interval(2, 1024.0, 0.5), "half of a bin, which is 1/1024 of the value"
    assert second.against(first, late) == Interval(2, 1024.0, 1.5), "half of both bins"
    assert first.mean(mean) == Interval(2, 5.0, 0.0), "means are exact"
    said = results.remarks(rows, results.Shown((grid.axis("a=1,2"),), (mean, late), ()))
    assert said[0].startswith("delay p99: seeds differ by less than a bin"), said
    assert said[1].startswith("delay mean: where ± is 0, all seeds have the same value"), said


def test_seeds_that_change_nothing_are_one_run_without_an_interval() -> None:
    """Also in a difference, where neither side is changed by a seed; the table says at which combinations."""
    loss = metric("haptic.loss").column
    rows = [
        {
            "a": value,
            "seed": seed,
            "flow": "haptic",
            "loss": lost + 0.01 * seed * moved,
            "records_sha256": hashed,
        }
        for value, lost, moved in (("1", 0.25, 0), ("2", 0.5, 0), ("3", 0.75, 1))
        for seed, hashed in ((1, value), (2, f"{value}{'b' * moved}"))
    ]
    axes = (grid.axis("a=1,2,3"),)
    first, second, third = results.groups(rows, axes)["haptic"]
    assert first.mean(loss) == Interval(1, 0.25, None)
    assert second.against(first, loss) == Interval(1, 0.25, None)
    mixed = third.against(first, loss)
    assert mixed is not None and mixed.n == 2 and mixed.half is not None
    shown = results.Shown(axes, (loss,), ())
    (said,) = results.remarks(rows, shown)
    assert said.startswith(f"{UNCHANGED} at 2 of 3 combinations; one run each, and no interval."), said
    (said,) = results.remarks(rows[:4], shown)
    assert said.startswith(f"{UNCHANGED}; one run each, and no interval."), said


def test_an_interval_that_is_not_0_never_looks_like_it() -> None:
    assert [half_shown(half, ms) for half in (0.0, 0.0001, 0.01, None)] == ["0.000", "<0.001", "0.010", "–"]
    assert half_shown(1e-9, percent) == "<0.0001 %"


def test_disturbed_runs_are_marked_in_table_and_page(tmp_path: Path) -> None:
    numbers = {"delay_mean_ms": 1.0, "delay_p99_ms": 2.0, "loss": 0.0, "flow": "haptic"}
    rows = [
        numbers | {"a": value, "seed": seed, "disturbed": (value, seed) == ("2", 5)}
        for value in ("1", "2")
        for seed in (4, 5)
    ]
    axes = (grid.axis("a=1,2"),)
    lines = [line.split() for line in results.tables(rows, axes).splitlines() if line[:1] in "12"]
    assert [line[:3] for line in lines] == [["1", "2", "–"], ["2", "2", "1"]]
    found = Survey(tmp_path / "short.toml", axes, (4, 5), (), "real", tmp_path)
    assert "1 run disturbed" in page.render(found, rows, 0)
    assert "disturbed</strong>" not in page.render(found, [row | {"disturbed": False} for row in rows], 0)


def test_the_contents_of_the_page_have_the_flows_of_all_sessions(tmp_path: Path) -> None:
    rows = [
        {"delay_mean_ms": 1.0, "loss": 0.0, "flow": flow, "a": "1", "seed": seed, "disturbed": False}
        for flow in ("ann/haptic", "bob/haptic", "haptic")
        for seed in (4, 5)
    ]
    found = Survey(tmp_path / "short.toml", (grid.axis("a=1"),), (4, 5), (), "virtual", tmp_path)
    text = page.render(found, rows, 0)
    links = dict(re.findall(r'<a href="#([\w.-]+)">([^<]*)</a>', text))
    assert [flow for flow in links.values() if "haptic" in flow] == ["ann/haptic", "bob/haptic", "haptic"]
    assert all(f' id="{anchor}"' in text for anchor in links)


def charts(page: str) -> list[dict[str, Any]]:
    """The charts of a page."""
    found: list[dict[str, Any]] = json.loads(page.split('id="data">')[1].split("</script>")[0])["charts"]
    return found


def test_shares_are_drawn_in_percent_with_their_intervals(tmp_path: Path) -> None:
    """t(0.975, 2) = 4.3027: losses of 1, 2 and 3 % have a standard deviation of 1 %."""
    rows = [
        {
            "a": "1",
            "seed": seed,
            "flow": "haptic",
            "loss": seed / 100,
            "delay_mean_ms": 2.0 * seed,
            "disturbed": False,
        }
        for seed in (1, 2, 3)
    ]
    found = Survey(tmp_path / "short.toml", (grid.axis("a=1"),), (1, 2, 3), (), "virtual", tmp_path)
    drawn = {chart["title"]: chart for chart in charts(page.render(found, rows, 0))}
    assert drawn["Loss"]["yLabel"] == "Loss (%)" and drawn["Loss"]["data"] == [[1.0], [2.0]]
    assert drawn["Loss"]["whiskers"] == [[pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)]]
    assert drawn["Delay mean"]["data"] == [[1.0], [4.0]]
    assert drawn["Delay mean"]["whiskers"] == [[pytest.approx(2 * 4.3027 / math.sqrt(3), rel=1e-4)]]


def test_the_quality_of_pictures_is_drawn_over_their_bit_rate(tmp_path: Path) -> None:
    found = Survey(tmp_path / "short.toml", (grid.axis("a=1,2,3"),), (1, 2), (), "virtual", tmp_path)
    media = {"1": (2e6, 30.0), "2": (4e6, 36.0), "3": (1e6, 27.0)}
    rows = [
        row
        for value, (bps, psnr_db) in media.items()
        for seed in (1, 2)
        for row in found.rows_of(
            grid.Cell((value,), seed),
            {
                "flows": {
                    "video": {"delay_ms": {"mean": 5.0, "p99": 6.0}, "loss": 0.0},
                    "haptic": {"loss": 0.0},
                },
                "media": {"video": {"coded_bps": bps, "psnr_db": psnr_db + 0.1 * seed, "ssim": None}},
            },
        )
    ]
    text = page.render(found, rows, 0)
    [chart] = [chart for chart in charts(text) if "over bit rate" in chart["title"]]
    assert chart["data"] == [[1.0, 2.0, 4.0], [pytest.approx(v) for v in (27.15, 30.15, 36.15)]]
    assert chart["title"] == "PSNR over bit rate" and chart["xLabel"] == "Mbit/s"
    assert VARIANT not in text
    alike = page.render(found, [row | {"ssim": 0.9} if row["flow"] == "video" else row for row in rows], 0)
    assert f"{VARIANT}." in alike, "which SSIM it is stands where it is drawn"
    assert "SSIM over bit rate" in [chart["title"] for chart in charts(alike)]


def test_a_sweep_leaves_a_table(swept: tuple[Path, str]) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(swept[0] / "out/sweep.parquet").to_pylist()
    assert len(table) == 2 * 2 * 2 * 4
    row = next(r for r in table if r["flow"] == "kinematic" and (r["delay_ms"], r["seed"]) == ("4", 2))
    assert {"delay_mean_ms", "delay_p99_ms", "loss", "records_sha256"} <= set(row)
    assert not list((swept[0] / "out").glob("work/*"))


def test_what_killed_cells_left_goes_with_the_next_sweep(tmp_path: Path) -> None:
    """Also of one that was killed after it had made its folder, and before it had marked it."""
    scenario(tmp_path)
    work = tmp_path / "out/work"
    sweep(tmp_path, seeds=1)
    assert not work.exists()
    key = "0123456789" * 2
    (work / f"{key}-1.unfinished-2").mkdir(parents=True)
    for name in (f"{key}-1.err", f".{key}-1.tcpsbed-lock"):
        (work / name).touch()
    sweep(tmp_path, seeds=2)
    assert not work.exists()


@pytest.mark.slow
@pytest.mark.parametrize("theirs", ["work/thesis.txt", "cells/mine.json", "failed/notes.txt", "work/data/a"])
def test_what_a_user_puts_between_the_cells_is_the_users(tmp_path: Path, theirs: str) -> None:
    scenario(tmp_path)
    sweep(tmp_path, seeds=1)
    (tmp_path / "out" / theirs).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / theirs).write_text("mine")
    again = tcpsbed(tmp_path, "sweep", "short.toml", "--over", "delay_ms=1", "--seeds", "2", "--out", "out")
    assert again.returncode == 2 and f"holds {theirs}, which is not a result of tcpsbed" in again.stderr
    assert (tmp_path / "out" / theirs).read_text() == "mine"


def test_the_figure_has_the_first_axis_as_x_and_the_second_as_lines(swept: tuple[Path, str]) -> None:
    page = (swept[0] / "out/sweep.html").read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    first = data["charts"][0]
    assert first["data"][0] == [1, 4]
    assert first["labels"] == ['label = "a"', 'label = "b"']
    assert all(half > 0 for half in first["whiskers"][0])
    assert first["data"][1][1] - first["data"][1][0] == pytest.approx(3.0, abs=1e-3)


def test_paired_differences_are_exact_where_seeds_share_their_noise(swept: tuple[Path, str]) -> None:
    """The sample run adds a noise that depends on the seed alone: it cancels from differences."""
    line = next(line for line in swept[1].splitlines() if line.startswith("4") and '"a"' in line)
    assert 0 < float(line.split()[-1]) < 0.05, "half of two bins, of 40 and 43 ms"
    assert float(line.split()[-2]) > 3.0


def test_a_second_call_runs_only_what_is_missing(swept: tuple[Path, str], tmp_path: Path) -> None:
    shutil.copytree(swept[0], tmp_path, dirs_exist_ok=True)
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out/cells").iterdir()}
    assert len(before) == 8
    status, shown, _ = sweep(tmp_path, seeds=3)
    assert "Cells: 8 reused, 0 repeated, 4 run for the first time." in shown.splitlines()
    after = {file: file.stat().st_mtime_ns for file in (tmp_path / "out/cells").iterdir()}
    assert status == 0 and len(after) == 12 and before.items() <= after.items()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ("scenario", "short.toml, or a file that it includes, has changed"),
        ("overrides", "other overrides"),
        ("build", "tcpsbed, Python or a package is another version or build"),
        ("older", "the earlier tcpsbed did not keep from what they were computed"),
    ],
)
def test_a_second_call_says_what_it_repeats_and_why(
    swept: tuple[Path, str], tmp_path: Path, changed: str, why: str
) -> None:
    shutil.copytree(swept[0], tmp_path, dirs_exist_ok=True)
    described = json.loads((tmp_path / "out/sweep.json").read_text())
    more: tuple[str, ...] = ()
    if changed == "overrides":
        more = ("--set", "tuned=1")
    else:
        scenario(tmp_path, 'name = "short"\nduration = "11 s"\n')
    if changed == "build":
        described["inputs"]["build"] = "another"
        why += " and short.toml, or a file that it includes, has changed"
    if changed == "older":
        del described["inputs"]
    (tmp_path / "out/sweep.json").write_text(json.dumps(described))
    marker.Marker("sweep", marker.GROWING).write(tmp_path / "out")
    _, shown, said = sweep(tmp_path, *more)
    line = f"Cells: 0 reused, 8 repeated ({why}), 0 run for the first time."
    assert line in shown.splitlines(), (shown, said)
    _, shown, _ = sweep(tmp_path, *more)
    assert "Cells: 8 reused, 0 repeated, 0 run for the first time." in shown.splitlines()
    assert "Cells:" not in swept[1], "nothing was there before"


def test_why_cells_are_repeated_is_told_by_processor_and_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both files change, but each combination reads one of them."""
    text = shipped.find("quickstart").read_text()
    file = tmp_path / "base.toml"
    file.write_text(
        text + '[hooks.work]\nrun = "./a.py:Fast"\nkind = "predict"\nat = ["ss-com"]\nflow = ["kinematic"]\n'
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("class Fast:\n    pass\n")
    axes = (grid.Axis("hooks.work.run", ("./a.py:Fast", "./b.py:Fast")),)
    made = lambda: Survey(file, axes, (1,), (), "virtual", tmp_path / "out")  # noqa: E731
    monkeypatch.setattr(survey, "processor", lambda: "one")
    earlier = made()
    found = again.Before(earlier, {}, earlier.inputs)
    assert earlier.inputs["processor"] == "one"
    monkeypatch.setattr(survey, "processor", lambda: "another")
    values = next(iter(earlier.begun))
    now = made()
    assert again._why(found, earlier, now, values, now.inputs) == "code ran on another processor"
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("class Fast:\n    a = 1\n")
    now = made()
    assert (
        again._why(found, earlier, now, values, now.inputs)
        == "code ran on another processor and a.py changed"
    )


BROKEN = ("", "{", "{}", "[]", "null", '{"flows":{}}', '{"summary":{"flows":{"a":1}}}')


def test_a_broken_file_of_a_cell_has_no_summary_and_is_put_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, broken = tmp_path / "a.json", tmp_path / "b.json"
    whole.write_text('{"summary": {"flows": {"a": {"loss": 0.0}}}}')
    for text in BROKEN:
        broken.write_text(text)
        assert survey.summary_in(broken) is None, text
    survey._set_broken_aside([whole, broken, tmp_path / "c.json"])
    aside = f"b.{os.getpid()}.broken"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json", aside]
    told = f"found no result in it, and called it {aside}; the cell is computed anew"
    assert capsys.readouterr().err == f"tcpsbed: {broken}: {told}\n"
    assert survey.summary_in(whole) == {"flows": {"a": {"loss": 0.0}}}


def test_a_cell_with_a_broken_file_is_computed_anew(swept: tuple[Path, str], tmp_path: Path) -> None:
    """As the file system may leave files that were written just before the power went."""
    shutil.copytree(swept[0], tmp_path, dirs_exist_ok=True)
    marker.Marker("sweep", marker.GROWING).write(tmp_path / "out")
    files = sorted((tmp_path / "out/cells").iterdir())
    for file, text in zip(files, BROKEN, strict=False):
        file.write_text(text)
    status, shown, said = sweep(tmp_path)
    assert status == 0 and "Traceback" not in said, said
    assert "7 repeated (their results could not be read)" in shown
    lines = [line for line in said.splitlines() if line.endswith("the cell is computed anew")]
    assert [sum(file.name in line for line in lines) for file in files] == [1] * 7 + [0], said
    kept = [file.read_text() for file in (tmp_path / "out/cells").glob("*.broken")]
    assert sorted(kept) == sorted(BROKEN), "nothing is lost"
    for file in files:
        new, old = (
            json.loads((folder / "out/cells" / file.name).read_text()) for folder in (tmp_path, swept[0])
        )
        assert new["summary"]["records_sha256"] == old["summary"]["records_sha256"]


@pytest.mark.slow
def test_a_table_and_a_page_that_the_user_edited_are_not_written_over(
    swept: tuple[Path, str], tmp_path: Path
) -> None:
    shutil.copytree(swept[0], tmp_path, dirs_exist_ok=True)
    for name in ("sweep.html", "sweep.parquet", "sweep.json"):
        before = (tmp_path / "out" / name).read_bytes()
        (tmp_path / "out" / name).write_bytes(b"what I think of it")
        status, _, said = sweep(tmp_path)
        assert status == 2 and f"out holds {name}, which was changed since tcpsbed wrote it" in said
        assert (tmp_path / "out" / name).read_bytes() == b"what I think of it"
        (tmp_path / "out" / name).unlink()
        assert sweep(tmp_path)[0] == 0 and (tmp_path / "out" / name).read_bytes() != b"what I think of it"
        assert len((tmp_path / "out" / name).read_bytes()) > 0.5 * len(before)


def test_a_changed_scenario_is_run_again(swept: tuple[Path, str], tmp_path: Path) -> None:
    shutil.copytree(swept[0], tmp_path, dirs_exist_ok=True)
    scenario(tmp_path, 'name = "short"\nduration = "20 s"\n')
    sweep(tmp_path, seeds=1)
    assert len(list((tmp_path / "out/cells").iterdir())) == 8 + 4


def test_a_scenario_that_changes_while_a_sweep_runs_stops_it(tmp_path: Path) -> None:
    text = 'name = "short"\nduration = "10 s"\ntakes_s = 0.6\nused = "trace.txt"\n'
    trace = tmp_path / "trace.txt"
    words = ("sweep", "short.toml", "--over", "delay_ms=1,2,3", "--seeds", "2", "--jobs", "1", "--out", "out")
    for file, changed in ((scenario(tmp_path, text), text.replace("10 s", "20 s")), (trace, "2")):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        trace.write_text("1")
        scenario(tmp_path, text)
        run = start(tmp_path, *words)
        _wait_for_cells(tmp_path / "out/cells", 1)
        kept = _cells(tmp_path / "out/cells")
        file.write_text(changed)
        _, said = run.communicate(timeout=60)
        assert run.returncode == 2 and len(said.splitlines()) == 1, said
        assert f"{file.name}: " in said and "changed while the sweep was running" in said
        assert "start the sweep again" in said
        assert _cells(tmp_path / "out/cells") == kept and not (tmp_path / "out/sweep.parquet").exists()


def test_results_are_found_by_the_names_that_cells_had_at_the_start(tmp_path: Path) -> None:
    text = '[components]\nms-com = "a"\nss-com = "b"\n[flows.kinematic]\n'
    file = scenario(tmp_path, text)
    found, again = (Survey(file, (), (1, 2), (), "virtual", tmp_path / "out") for _ in range(2))
    before = [job.key for job in found.jobs()]
    scenario(tmp_path, f'duration = "20 s"\n{text}')
    assert [job.key for job in found.jobs()] == before
    assert not {job.key for job in again.jobs()} & set(before)


def test_a_failing_cell_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    scenario(tmp_path)
    over = ("--over", "fault=none,world,crash,errors")
    done = tcpsbed(tmp_path, "sweep", "short.toml", *over, "--seeds", "2", "--jobs", "2", "--out", "out")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if "cell failed" in line]
    assert len(told) == 6, done.stderr
    for fault, said in (
        ("world", "node cloud died"),
        ("crash", "ended by SIGKILL"),
        ("errors", "node cloud died"),
    ):
        assert [said in line for line in told if f"fault={fault} " in line] == [True, True], (fault, told)
    assert len(_cells(tmp_path / "out/cells")) == 2
    assert len(list((tmp_path / "out/failed").glob("*.txt"))) == 6
    assert (tmp_path / "out/sweep.parquet").is_file()
    assert "6 cells failed" in (tmp_path / "out/sweep.html").read_text()


def test_a_value_that_cannot_be_loaded_is_refused_before_the_first_cell_runs(tmp_path: Path) -> None:
    scenario(tmp_path)
    done = tcpsbed(
        tmp_path,
        "sweep",
        "short.toml",
        "--over",
        "delay_ms=1,-1",
        "--seeds",
        "1",
        "--jobs",
        "1",
        "--out",
        "out",
    )
    assert done.returncode == 2 and "allowed: a positive number" in done.stderr
    assert not (tmp_path / "out").exists()


def _cells(folder: Path) -> dict[Path, int]:
    """When each finished cell was written."""
    return {file: file.stat().st_mtime_ns for file in folder.glob("[!.]*.json")}


def _wait_for_cells(folder: Path, number: int) -> None:
    until = time.monotonic() + 60
    while len(_cells(folder)) < number:
        assert time.monotonic() < until, "no cell was finished"
        time.sleep(0.05)


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
@pytest.mark.slow
def test_a_stopped_sweep_goes_on_where_it_was(tmp_path: Path, sign: int, status: int) -> None:
    scenario(tmp_path, 'name = "short"\nduration = "10 s"\ntakes_s = 0.6\n')
    arguments = (
        "sweep",
        "short.toml",
        "--over",
        "delay_ms=1,2,3",
        "--seeds",
        "3",
        "--jobs",
        "2",
        "--out",
        "out",
    )
    first = start(tmp_path, *arguments)
    _wait_for_cells(tmp_path / "out/cells", 2)
    os.kill(first.pid, sign)
    _, said = first.communicate(timeout=120)
    assert first.returncode == status
    assert (
        sign == signal.SIGKILL or "finished cells are in out; the same command continues from there" in said
    )
    kept = _cells(tmp_path / "out/cells")
    assert 2 <= len(kept) < 9
    (tmp_path / "out/cells/.cell.json.77.part.json").write_text("{")
    assert tcpsbed(tmp_path, *arguments).returncode == 0
    after = _cells(tmp_path / "out/cells")
    assert len(after) == 9 and kept.items() <= after.items()
    assert set((tmp_path / "out/cells").iterdir()) == set(after), "nothing is left of the kill"


def test_a_sweep_of_which_no_cell_can_be_loaded_is_refused_once(tmp_path: Path) -> None:
    scenario(tmp_path)
    words = ("sweep", "short.toml", "--over", "delay_ms=-1,-2", "--seeds", "3", "--out", "out")
    done = tcpsbed(tmp_path, *words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 3 and "cell failed" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("values", "others"), [("1,2,3,4,5", "(and 4 other values)"), ("1,2", "(and 1 other value)")]
)
def test_what_is_wrong_with_all_values_alike_is_said_once(tmp_path: Path, values: str, others: str) -> None:
    out = ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(
        app, ["sweep", str(shipped.find("quickstart")), "--over", f"links.l1.delay={values}", *out]
    )
    said = done.stderr.strip()
    assert done.exit_code == 2 and len(said.splitlines()) == 1, said
    assert "--over links.l1.delay: found 1, a number without a unit" in said and said.endswith(others)


def test_an_axis_takes_a_range_as_a_campaign_does() -> None:
    assert axis_of("links.l1.rate=1..2 Mbit/s step 0.5,4 Mbit/s").values == tuple(
        f"{number} Mbit/s" for number in ("1", "1.5", "2", "4")
    )
    assert axis_of('links.l1.rate="1..2 Mbit/s step 0.5"').values == ("1 Mbit/s", "1.5 Mbit/s", "2 Mbit/s")
    for wrong, said in (
        ("1..2 ms", "without a step"),
        ("1 ms,0..1 ms step 1", "a value twice.*; allowed: each value once"),
    ):
        with pytest.raises(ConfigError, match=f"--over.*{said}"):
            axis_of(f"a={wrong}")
