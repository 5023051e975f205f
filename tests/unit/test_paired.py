"""Comparisons seed by seed: of runs with further seeds, and of the combinations of a sweep."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy import stats as theirs
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.campaign.compared import compared
from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError, DataError
from tcpsbed.views.metric import metric
from tcpsbed.views.paired import Comparison, Condition

DELAYS = {"udp": (10.0, 12.0, 9.0, 14.0, 11.0, 13.0), "dpm": (11.5, 13.0, 10.25, 15.5, 12.0, 14.75)}


def summary(seed: int, delay: float, sha256: str = "") -> dict[str, Any]:
    flow = {"delay_ms": {"mean": delay, "p99": 2 * delay}, "loss": 0.0, "judged": 100}
    return {"seed": seed, "records_sha256": sha256 or f"{seed}{delay}", "flows": {"haptic": flow}}


def conditions(**more: tuple[float, ...]) -> list[Condition]:
    return [
        Condition(name, {seed: summary(seed, delay) for seed, delay in enumerate(delays, 1)})
        for name, delays in (DELAYS | more).items()
    ]


def sweep(
    folder: Path,
    delays: dict[str, tuple[float, ...]],
    baseline: str = "",
    labels: dict[str, str] | None = None,
) -> Path:
    """The files of a sweep that are compared."""
    (folder / "cells").mkdir(parents=True)
    names = []
    for value, found in delays.items():
        for seed, delay in enumerate(found, 1):
            names.append(f"{value}{seed}")
            settings = ['duration="3 s"', f"channels.all.transport={value}", f"seed={seed}"]
            cell = {"values": [value], "seed": seed, "settings": settings, "summary": summary(seed, delay)}
            (folder / "cells" / f"{names[-1]}.json").write_text(json.dumps(cell))
    described = {
        "scenario": "a.toml",
        "axes": [{"key": "channels.all.transport", "values": list(delays)}],
        "seeds": list(range(1, 1 + max(map(len, delays.values())))),
        "settings": ['duration="3 s"'],
        "world": "virtual",
        "baseline": {"channels.all.transport": baseline} if baseline else {},
        "labels": labels or {},
        "cells": names,
    }
    (folder / "sweep.json").write_text(json.dumps(described))
    return folder


def test_pairs_are_seeds_and_all_tests_are_corrected_together() -> None:
    found = Comparison(conditions()).differences
    mean, late, loss = found
    apart = [b - a for a, b in zip(*DELAYS.values(), strict=True)]
    test = theirs.ttest_rel(DELAYS["dpm"], DELAYS["udp"])
    low, high = test.confidence_interval()
    difference = mean.found.difference
    assert (difference.mean - difference.half, difference.mean + difference.half) == pytest.approx(
        (low, high)
    )
    assert difference.mean == pytest.approx(sum(apart) / 6) and mean.before == pytest.approx(11.5)
    assert mean.t.p == pytest.approx(test.pvalue) and mean.t.p_holm == pytest.approx(2 * test.pvalue)
    assert late.t.p == pytest.approx(test.pvalue) and late.t.effect == pytest.approx(mean.t.effect)
    assert loss.t is None, "no loss differs"
    assert mean.found.bootstrap[0] < difference.mean < mean.found.bootstrap[1]


def test_only_common_seeds_are_paired() -> None:
    first, second = conditions()
    short = Condition(
        "short", {seed: one for seed, one in second.by_seed.items() if seed < 4} | {99: summary(99, 1.0)}
    )
    assert {one.found.difference.n for one in Comparison([first, short]).differences} == {3}
    alone = Condition("alone", {7: summary(7, 1.0)})
    assert Comparison([first, alone]).differences == [] and str(Comparison([alone, alone])) == ""


def test_seeds_that_change_nothing_are_one_value() -> None:
    """Not six equal pairs, whose interval would be of width 0."""
    still = [
        Condition(name, {seed: summary(seed, delay, f"same{delay}") for seed in range(1, 7)})
        for name, delay in (("a", 1.0), ("b", 2.0))
    ]
    assert Comparison(still).differences == []
    assert (
        str(Comparison(still))
        == "seeds change nothing: nothing here is random, and there is no interval: a; b\n"
    )
    assert Comparison([still[0], conditions()[0]]).differences, "one side is random"


def test_combinations_of_a_sweep_are_compared_with_the_first(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "out", DELAYS | {"tcp": (30.0, 31.0, 32.5, 33.0, 30.0, 35.0)})
    done = CliRunner().invoke(app, ["compare", str(folder), "--page", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    (dpm,) = [line for line in lines if line.startswith("delay mean") and "transport=dpm" in line]
    assert "channels.all.transport=dpm 6 11.500 +1.333" in " ".join(dpm.split()), dpm
    assert sum("transport=tcp" in line for line in lines if "Holm" not in line) == 3 + 3, (
        "tables, then sentences"
    )
    assert "duration" not in done.output
    assert "Holm 1979" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_combinations_of_a_campaign_are_compared_with_its_baseline(tmp_path: Path) -> None:
    """By its labels, too."""
    folder = sweep(tmp_path / "out", DELAYS, "dpm", {"udp": "plain UDP"})
    done = CliRunner().invoke(app, ["compare", str(folder)])
    (line,) = [line for line in done.output.splitlines() if line.startswith("delay mean")]
    assert "transport=plain UDP" in line and "\u22121.333" in line, done.output
    assert "Baseline: channels.all.transport=dpm." in done.output


def test_a_baseline_of_one_factor_is_met_at_each_value_of_the_others() -> None:
    flow = conditions(c=(20.0,) * 6, d=(21.0, 22.0, 21.5, 22.5, 21.0, 23.0))
    bases = [0, 0, 2, 2]
    found = Comparison(
        [Condition(one.name, one.by_seed, base) for one, base in zip(flow, bases, strict=True)]
    ).differences
    means = {one.condition: one for one in found if one.metric.key == "delay_mean_ms"}
    assert means.keys() == {"dpm", "d"} and means["d"].before == 20.0
    told = str(Comparison([flow[0], Condition("alone", flow[1].by_seed, None), flow[2]]))
    assert "no result yet" in told and "alone" in told


def test_worlds_of_a_campaign_are_conditions_of_their_own(tmp_path: Path) -> None:
    """Their cells have the same overrides."""
    folder = sweep(tmp_path / "out", DELAYS)
    described = json.loads((folder / "sweep.json").read_text())
    described["axes"] = [{"key": "world", "values": ["virtual", "real"]}]
    (folder / "sweep.json").write_text(json.dumps(described))
    for file in (folder / "cells").iterdir():
        cell = json.loads(file.read_text())
        file.write_text(json.dumps({**cell, "settings": [f"seed={cell['seed']}"]}))
    assert [one.name for one in compared(folder).conditions] == ["world=virtual", "world=real"]


@pytest.mark.parametrize(
    ("delays", "said"),
    [
        ({"udp": (1.0, 2.0)}, "has nothing to compare; allowed: a sweep of two combinations or more"),
        (
            {"udp": (1.0,), "dpm": (2.0,)},
            "has no two seeds that combinations have in common; allowed: a sweep with --seeds 2",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_message(
    tmp_path: Path, delays: dict[str, tuple[float, ...]], said: str
) -> None:
    folder = sweep(tmp_path / "out", delays)
    done = CliRunner().invoke(app, ["compare", str(folder)])
    assert done.exit_code == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    both = CliRunner().invoke(app, ["compare", str(folder), str(tmp_path)])
    assert both.exit_code == 2 and "found a sweep among 2 folders" in both.stderr


def test_a_broken_cell_is_named(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "out", DELAYS)
    (folder / "cells" / "udp1.json").write_text("{")
    done = CliRunner().invoke(app, ["compare", str(folder)])
    assert done.exit_code == 2 and "udp1.json" in done.stderr
    shutil.rmtree(folder / "cells")
    done = CliRunner().invoke(app, ["compare", str(folder)])
    assert done.exit_code == 2 and "nothing to compare" in done.stderr


def test_without_scipy_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    told = str(Comparison(conditions()))
    assert "pip install 'tcpsbed[stats]'" in told and "p Holm  " not in told.splitlines()[1]
    assert "mean difference 1.333 ms (95 % interval" in told and "6 pairs)" in told, "the interval decides"


def test_only_what_was_asked_for_is_tested_and_corrected() -> None:
    asked = [metric("haptic.delay_ms.p99")]
    (one,) = Comparison(conditions(), asked).differences
    assert one.metric.path == "haptic.delay_ms.p99" and one.t is not None
    assert one.t.p_holm == one.t.p, "there is one test"
    with pytest.raises(DataError, match='--metric: found "haptik", which is not a flow'):
        Comparison(conditions(), [metric("haptik.loss")]).refuse_unknown("--metric")


def test_a_campaign_is_tested_in_its_metrics_unless_others_are_asked_for(tmp_path: Path) -> None:
    folder = sweep(tmp_path / "out", DELAYS)
    described = json.loads((folder / "sweep.json").read_text()) | {"metrics": ["haptic.delay_ms.p99"]}
    (folder / "sweep.json").write_text(json.dumps(described))
    done = CliRunner().invoke(app, ["compare", str(folder)])
    assert "delay p99" in done.output and "delay mean" not in done.output and " 1 test." in done.output
    done = CliRunner().invoke(app, ["compare", str(folder), "--metric", "haptic.delay_ms.mean"])
    assert "delay mean" in done.output and "delay p99" not in done.output
    for asked, said in (
        ("haptic.delay_ms.p98", '--metric: found "haptic.delay_ms.p98"'),
        ("video.loss", '--metric: found "video", which is not a flow; allowed: haptic'),
    ):
        done = CliRunner().invoke(app, ["compare", str(folder), "--metric", asked])
        assert done.exit_code == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_number_of_a_link_can_be_asked_for() -> None:
    def lossy(name: str, losses: tuple[float, ...]) -> Condition:
        link = "l1.forward"
        return Condition(
            name, {n: {"network": [{"name": link, "loss": loss}]} for n, loss in enumerate(losses)}
        )

    both = [lossy("a", (0.1, 0.2, 0.1)), lossy("b", (0.3, 0.5, 0.4))]
    (one,) = Comparison(both, [metric("network.l1.forward.loss")]).differences
    assert one.before == pytest.approx(0.4 / 3) and one.found.difference.mean == pytest.approx(0.8 / 3)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (
            DELAYS["udp"],
            DELAYS["dpm"],
            "b is higher than a: mean difference 1.333 ms (95 % interval 1.016 to 1.651, corrected p ",
        ),
        (
            DELAYS["dpm"],
            DELAYS["udp"],
            "b is lower than a: mean difference \u22121.333 ms (95 % interval \u22121.651 to ",
        ),
        (
            (1.0, 2.0, 3.0),
            (3.0, 1.0, 3.5),
            "no difference shown between b and a: mean difference 0.500 ms (95 %",
        ),
        ((1.0, 2.0), (2.0, 3.5), "no difference shown between b and a: 2 pairs are too few."),
        ((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), "no difference between b and a in any of 3 pairs."),
        ((1.0, 2.0, 3.0), (2.0, 3.0, 4.0), "b is higher than a by 1.000 ms in each of 3 pairs."),
    ],
)
def test_verdicts_are_sentences(first: tuple[float, ...], second: tuple[float, ...], said: str) -> None:
    made = [
        Condition(name, {seed: summary(seed, delay) for seed, delay in enumerate(delays)})
        for name, delays in (("a", first), ("b", second))
    ]
    (verdict,) = Comparison(made, [metric("haptic.delay_ms.mean")]).verdicts
    assert verdict.startswith(f"haptic, delay mean: {said}"), verdict
    assert verdict.endswith("pairs).") == ("mean difference" in said)


def test_a_p_that_correction_lifts_above_the_level_is_said_to_decide() -> None:
    delays = ((1.0, 2.0, 3.0, 4.0), (1.5, 2.2, 3.7, 4.2))
    made = [Condition(f"{n}", {s: summary(s, ms) for s, ms in enumerate(of)}) for n, of in enumerate(delays)]
    several = [metric(f"haptic.delay_ms.{name}") for name in ("mean", "p50", "p99", "max")]
    alone = Comparison(made, several[:1]).verdicts[0]
    among = Comparison(made, several).verdicts[0]
    assert "1 is higher than 0" in alone and "above" not in alone
    assert "no difference shown" in among and ", which leaves 0 out, but corrected p = " in among
    assert " is above 0.05, 4 pairs)." in among


def test_runs_with_seeds_are_paired_too(tmp_path: Path, shipped_scenarios: Path) -> None:
    words = [
        str(shipped_scenarios / "quickstart.toml"),
        "--duration",
        "1 s",
        "--no-report",
        "--no-samples",
        "-q",
    ]
    for name, delay in (("a", "5 ms"), ("b", "8 ms")):
        more = ["--set", f"links.l1.delay={delay}", "--seeds", "3", "--out", str(tmp_path / name)]
        done = CliRunner().invoke(app, ["run", *words, *more])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert done.exit_code == 0 and "kinematic, paired by seed" in done.output
    (line,) = [
        one for one in done.output.split("kinematic, paired by seed")[1].splitlines() if "delay mean" in one
    ][:1]
    assert " B " in line and " 3 " in line and "+" in line
    assert (
        "\n\nkinematic, delay mean: B is higher than A: mean difference 3.001 ms (95 % interval"
        in done.output
    )
    assert done.output.rstrip().splitlines()[-1].startswith("video, ")
    found = tcpsbed.compare(tmp_path / "a", tmp_path / "b", metrics=["haptic.delay_ms.p99"]).by_seed
    assert [one.metric.path for one in found.differences] == ["haptic.delay_ms.p99"]
    assert found.verdicts[0].startswith("haptic, delay p99: B is higher than A: mean difference 3.107 ms")
    with pytest.raises(ConfigError, match=r'--metric: found "haptic"'):
        tcpsbed.compare(tmp_path / "a", tmp_path / "b", metrics=["haptic"])


def test_python_takes_the_folder_of_a_campaign_as_the_command_line_does(tmp_path: Path) -> None:
    """With the p-values themselves, which tables round."""
    folder = sweep(tmp_path / "out", DELAYS, "udp")
    found = tcpsbed.compare(folder, metrics=["haptic.delay_ms.mean"])
    (one,) = found.differences
    exact = theirs.ttest_rel(DELAYS["dpm"], DELAYS["udp"]).pvalue
    assert one.t is not None and one.t.p == pytest.approx(exact) and one.t.p_holm == one.t.p
    assert (
        str(found)
        in CliRunner().invoke(app, ["compare", str(folder), "--metric", "haptic.delay_ms.mean"]).output
    )
    (row,) = found.to_arrow().to_pylist()
    assert (row["metric"], row["condition"]) == ("haptic.delay_ms.mean", "channels.all.transport=dpm")
    assert row["p"] == one.t.p and row["before"] == pytest.approx(11.5)
    with pytest.raises(DataError, match="found a sweep among 2 folders"):
        tcpsbed.compare(folder, tmp_path)
    with pytest.raises(DataError, match='--metric: found "haptik", which is not a flow'):
        tcpsbed.compare(folder, metrics=["haptik.loss"])


def test_verdicts_name_what_differs_and_end_with_all_rows() -> None:
    """A row is what both conditions share."""
    made: list[Condition] = []
    for rate, factor in (("1", 1.0), ("2", 1.0), ("3", -1.0)):
        for name, delays in DELAYS.items():
            base = 11.5
            by_seed = {n: summary(n, base + factor * (delay - base)) for n, delay in enumerate(delays)}
            made.append(
                Condition(
                    f"rate={rate}, transport={name}",
                    by_seed,
                    len(made) // 2 * 2,
                    {"rate": rate, "transport": name},
                )
            )
    found = Comparison(made, [metric("haptic.delay_ms.mean")]).verdicts
    assert found[0].startswith(
        "haptic, delay mean at rate=1: transport=dpm is higher than udp: mean difference 1.333 ms"
    )
    assert found[2].startswith(
        "haptic, delay mean at rate=3: transport=dpm is lower than udp: mean difference"
    )
    assert found[3:] == ["haptic, delay mean: transport=dpm against udp: lower in 1 of 3, higher in 2 of 3."]
