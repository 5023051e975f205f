"""Draws the pictures of the README into docs/pictures, light and dark: make pictures

Every number comes from a run in virtual time that this script makes, so the same tree draws the same pictures. Needs the
extras `plot` and `robot`. Names of pictures after the command draw only those.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from PIL import Image

import tcpsbed
from canvas import LIGHT, ROOT, WIDTH, Theme, drawn, headed, lit, run, save
from tcpsbed import drawing, hooks
from tcpsbed.analysis.stats import interval
from tcpsbed.palette import COMPONENT, LINK
from tcpsbed.robots import ROBOTS
from tcpsbed.robots.cell import Cell

QUEUEING, SERIALISATION = "#D55E00", "#F2A67A"
TRANSPORTS = {
    "no-merge": "no-merge: a packet for every sample",
    "dpm": "dpm (Gokhale 2017)",
    "dpm-q": "dpm-q",
}


def command(*words: str, folder: Path = ROOT) -> str:
    """What a command of tcpsbed prints in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def causes(split: dict[str, Any], theme: Theme) -> list[tuple[str, float, str, str]]:
    """The causes of a flow's delay: name, ms, colour, colour of letters on it."""
    ms = {part["part"]: part["mean_ms"] for part in split["parts"]}
    return [
        ("queueing", ms["queueing"], QUEUEING, "#ffffff"),
        ("propagation", ms["propagation"], theme.propagation, theme.ink),
        ("serialisation", ms["serialisation"], SERIALISATION, LIGHT.ink),
        ("processing", ms["working"] + ms["waiting"], COMPONENT, "#ffffff"),
    ]


def arm(folder: Path) -> None:
    """The arm behind a full queue, the same arm without delay, and the causes of the delay between them."""
    slow = ["rate='1.2 Mbit/s'", "delay='65 ms'", "queue='60 kB'"]
    late = [f"links.l1.{key}" for key in slow] + ["traffic.vbr={on='l1',rate='700 kbit/s'}"]
    once = [f"links.{link}.delay='0 ms'" for link in ("access", "l1", "egress")]
    states: list[Any] = []
    runs: list[Any] = []
    for name, sets in (("late", late), ("once", once)):
        state = folder / f"{name}.state"
        publish = f"components.tactile-teleoperator.robot.params.publish='{state}'"
        runs.append(run("pick-and-place", folder / name, "duration='6.4 s'", publish, *sets))
        read = Cell.open(state).read()
        assert read is not None
        states.append(read[2])
    robot, ahead = (hooks.make(*ROBOTS["mujoco-arm"], {}) for _ in states)
    for one, state in zip((robot, ahead), states, strict=True):
        one.show(state)
    split = runs[0].summary["split"]["kinematic"]

    def draw(paper: Any, theme: Theme) -> None:
        picture = paper.add_axes((0, 0, 0.6, 1))
        picture.imshow(lit(robot, (118, -30, 0.56), (960, 720), theme, ahead), aspect="auto")
        picture.set_axis_off()
        paper.text(0.635, 0.865, f"Commands arrive {split['total_ms']:.0f} ms late", size=24, weight="bold")
        paper.text(0.635, 0.79, "solid: the arm as it is", size=19, color=theme.soft)
        paper.text(0.635, 0.735, "blue: the arm if nothing delayed the hand", size=19, color=theme.soft)
        column = paper.add_axes((0.635, 0.16, 0.075, 0.5))
        column.set_axis_off()
        bottom = 0.0
        for name, ms, color, _ in reversed(causes(split, theme)):
            column.bar(0, ms, bottom=bottom, color=color)
            if ms > 10:
                column.text(0.55, bottom + ms / 2, f"{ms:.0f} ms", size=25, weight="bold", va="bottom")
                column.text(0.55, bottom + ms / 2, name, size=19, va="top", color=theme.soft)
            bottom += ms
        column.set(xlim=(-0.4, 0.4), ylim=(0, bottom))
        text = "bottleneck of 1.2 Mbit/s, queue of 60 kB"
        paper.text(0.635, 0.075, text, size=19, color=theme.soft)

    drawn("arm", 720, draw, colors=None)


def time(folder: Path) -> None:
    """Where the time goes in the quickstart: of every flow, place by place and cause by cause."""
    summary = run("quickstart", folder / "time").summary
    flows = list(summary["flows"])

    def draw(paper: Any, theme: Theme) -> None:
        text = "quickstart: mean one-way delay in ms, by place and by cause"
        headed(paper, theme, "Where the time goes", text)
        axes = paper.add_axes((0.13, 0.14, 0.84, 0.66))
        colors = {"component": (COMPONENT, "#ffffff"), "link": (LINK, LIGHT.ink)}
        for row, flow in enumerate(flows):
            places = [
                (step["name"].replace("->", "→"), step["latency_ms"]["mean"], *colors[step["what"]])
                for step in summary["path"][flow]
            ]
            stacked(axes, row - 0.2, places, 0.36)
            stacked(axes, row + 0.17, causes(summary["split"][flow], theme), 0.28)
            mean = summary["flows"][flow]["delay_ms"]["mean"]
            axes.text(-0.3, row - 0.2, flow, ha="right", va="center", weight="bold")
            axes.text(-0.3, row + 0.17, f"{mean:.1f} ms", ha="right", va="center", color=theme.soft)
        keys = {"link": LINK, "component, processing": COMPONENT, "queueing": QUEUEING}
        keys |= {"propagation": theme.propagation, "serialisation": SERIALISATION}
        patches = [pyplot.Rectangle((0, 0), 1, 1, color=color) for color in keys.values()]
        axes.legend(patches, keys, loc="upper right", frameon=False, bbox_to_anchor=(1, 1.04))
        axes.set(ylim=(len(flows) - 0.45, -0.5), yticks=[])
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_xlabel("ms since the sample was made")

    drawn("time", 760, draw)


def board(folder: Path) -> None:
    """Where the time goes between boards on serial lines."""
    summary = run("board", folder / "board", "warmup='0 s'").summary
    colors = {"component": (COMPONENT, "#ffffff"), "link": (LINK, LIGHT.ink)}

    def draw(paper: Any, theme: Theme) -> None:
        headed(
            paper,
            theme,
            "Where the time goes between boards",
            "board: mean one-way delay, µs; serial lines are orange",
        )
        axes = paper.add_axes((0.135, 0.19, 0.845, 0.53))
        for row, (flow, steps) in enumerate(summary["path"].items()):
            start = 0.0
            for step in steps:
                us = 1e3 * step["latency_ms"]["mean"]
                color, ink = colors[step["what"]]
                axes.barh(row, us, 0.72, left=start, color=color, edgecolor=theme.paper, linewidth=1.5)
                if us > 100:
                    label = f"{step['name'].replace(' -> ', ' →' + chr(10))}\n{us:.0f}"
                    axes.text(start + us / 2, row, label, ha="center", va="center", color=ink, size=16)
                start += us
            axes.text(-15, row, flow, ha="right", va="center", weight="bold")
        axes.set(ylim=(1.5, -0.5), yticks=[], xlabel="µs since the sample was made")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")

    drawn("board", 560, draw, themes=(LIGHT,))


def stacked(axes: Any, row: float, parts: list[tuple[str, float, str, str]], height: float) -> None:
    """A bar of parts; those with room for it carry their name and length."""
    start = 0.0
    for name, ms, color, ink in parts:
        axes.barh(row, ms, height, left=start, color=color, edgecolor=axes.get_facecolor(), linewidth=1.5)
        if ms > 0.17 * len(name) + 1.2:
            axes.text(start + ms / 2, row, f"{name} {ms:.1f}", ha="center", va="center", color=ink, size=17)
        start += ms


def delay(folder: Path) -> None:
    """Delay of the force over time while cross traffic comes and goes, by three transports."""
    runs = {
        name: run("dumbbell-phases", folder / f"delay-{name}", f"channels.session.transport='{name}'").series
        for name in TRANSPORTS
    }
    phases = ((0, 400), (0.5, 660), (2.5, 750), (4.5, 800), (6.5, 400), (9, 0))

    def draw(paper: Any, theme: Theme) -> None:
        text = "dumbbell-phases: mean delay of the force in bins of 50 ms, largest as a shade"
        headed(paper, theme, "A merging transport keeps the queue short", text)
        axes = paper.add_axes((0.075, 0.125, 0.9, 0.68))
        for color, (name, series) in zip(theme.curves, runs.items(), strict=True):
            curve = {
                key: np.array(series["flows"]["haptic"][f"delay_{key}_ms"], float) for key in ("mean", "max")
            }
            axes.plot(series["t_s"], curve["mean"], color=color, label=TRANSPORTS[name])
            axes.fill_between(
                series["t_s"], curve["mean"], curve["max"], color=color, alpha=0.25, linewidth=0
            )
        for (start, rate), (end, _) in itertools.pairwise(phases):
            axes.axvline(start, color=theme.soft, linewidth=1, linestyle=":")
            axes.text((start + end) / 2, 108, f"{rate}", ha="center", size=18, color=theme.soft)
        axes.text(9, 114, "cross traffic, kbit/s", ha="right", size=18, color=theme.soft)
        axes.set(
            xlim=(0, 9),
            ylim=(0, 120),
            xlabel="time (s)",
            ylabel="one-way delay (ms)",
            yticks=range(0, 101, 20),
        )
        axes.grid(axis="y")
        axes.legend(
            loc="center left",
            bbox_to_anchor=(0.11, 0.5),
            facecolor=theme.paper,
            edgecolor="none",
            framealpha=1,
        )

    drawn("delay", 760, draw)


RATES = (1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0)


def swept(folder: Path) -> Path:
    """A sweep of three transports over the rate of the bottleneck; it is run once."""
    axis = "links.l1.rate=" + ",".join(f"{rate} Mbit/s" for rate in RATES)
    names = "channels.session.transport=" + ",".join(TRANSPORTS)
    words = [
        "--over",
        axis,
        "--over",
        names,
        "--seeds",
        "5",
        "--duration",
        "10 s",
        "--out",
        str(folder / "sweep"),
    ]
    command("sweep", "scenarios/dumbbell-dpm.toml", *words, "--quiet")
    return folder / "sweep"


def plot(folder: Path) -> None:
    """The sweep as `tcpsbed plot` draws it for slides."""
    labels = ["links.l1.rate=rate of the bottleneck", "channels.session.transport=transport"]
    slides("plot", swept(folder), folder, labels)


def slides(name: str, runs: Path, folder: Path, labels: Sequence[str] = ()) -> None:
    """A sweep of transports over a rate as `tcpsbed plot` draws it for slides, on a light and on a dark ground."""
    for style, suffix in (("slides", ""), ("dark", "-dark")):
        drawn = tcpsbed.plot(
            runs, x="rate", y="haptic.delay_ms.p99", by="transport", labels=list(labels), style=style
        )
        file = drawing.saved(drawn.figure, folder / f"{name}{suffix}.png", dpi=WIDTH // 10)
        with Image.open(file) as picture:
            save(f"{name}{suffix}", picture.convert("RGB"))


def controller(folder: Path) -> None:
    """The campaign of docs/tutorial-controller.md."""
    page = (ROOT / "docs/tutorial-controller.md").read_text(encoding="utf-8")
    (folder / "compare.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    command("new", "controller", "calm", folder=folder)
    command("init", "--from", "dumbbell-dpm", folder=folder)
    command("campaign", "compare.toml", "--out", "compare", "--quiet", folder=folder)
    slides("controller", folder / "compare", folder)


def search(folder: Path) -> None:
    """Where the delay of the force passes 30 ms: along the delay of the bottleneck, and over its rate, too."""
    late, delay = "haptic.delay_ms.p99 > 30", "links.l1.delay=0..50 ms"
    of, rate = ROOT / "scenarios/quickstart.toml", "links.l1.rate=3..5 Mbit/s step 0.1"
    found = tcpsbed.search(of, delay, until=late, duration="2 s", out=folder / "search")
    over = (rate, "links.l1.delay=0..40 ms step 2")
    curve = tcpsbed.search(of, over, until=late, duration="2 s", out=folder / "curve")
    for one, name in ((found, "search"), (curve, "search-curve")):
        for style, suffix in (("slides", ""), ("dark", "-dark")):
            file = one.draw(folder / f"{name}{suffix}.png", style)
            with Image.open(file) as picture:
                whole = picture.convert("RGB")
                size = (WIDTH, round(picture.height * WIDTH / picture.width))
                save(f"{name}{suffix}", whole.resize(size, Image.Resampling.LANCZOS))


def sweep(folder: Path) -> None:
    """Delay of the force over the rate of the bottleneck, by three transports."""
    rows = parquet.read_table(swept(folder) / "sweep.parquet").to_pylist()
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["flow"] == "haptic":
            cell = row["channels.session.transport"], row["links.l1.rate"]
            found.setdefault(cell, []).append(row["delay_p99_ms"])

    def draw(paper: Any, theme: Theme) -> None:
        text = "dumbbell-dpm: 21 cells of 5 seeds; p99 of the force's delay, intervals of 95 % over the seeds"
        headed(paper, theme, "How much rate does a transport need?", text)
        axes = paper.add_axes((0.075, 0.125, 0.9, 0.68))
        for color, (name, label) in zip(theme.curves, TRANSPORTS.items(), strict=True):
            cells = [interval(found[name, f"{rate} Mbit/s"]) for rate in RATES]
            half = [cell.half for cell in cells]
            means = [cell.mean for cell in cells]
            axes.errorbar(
                RATES,
                means,
                half,
                color=color,
                label=label,
                marker="o",
                markersize=9,
                capsize=6,
                elinewidth=2,
            )
        axes.set(ylim=(0, 120), xlabel="rate of the bottleneck (Mbit/s)", ylabel="p99 of one-way delay (ms)")
        axes.grid(axis="y")
        axes.legend(loc="upper right", frameon=False)

    drawn("sweep", 760, draw)


def stability(_: Path) -> None:
    """How much delay and loss the loop of scenarios/step.toml tolerates."""
    found = json.loads(command("map", "scenarios/step.toml", "--json", "--quiet"))
    overshoot = np.array(found["overshoot"], float)
    levels = [0, 5, 20, 50, 100, 1e9]

    def draw(paper: Any, theme: Theme) -> None:
        text = "step: mean overshoot of a loop, 200 runs in each of 2500 cells"
        headed(paper, theme, "How much delay and loss does a loop tolerate?", text)
        axes = paper.add_axes((0.075, 0.125, 0.9, 0.68))
        base = np.array(to_rgb(theme.paper))
        tints = [("#0072B2", 0.75), ("#0072B2", 0.45), (LINK, 0.45), (LINK, 0.8), ("#B00020", 0.6)]
        colors = [tuple(base * (1 - share) + np.array(to_rgb(color)) * share) for color, share in tints]
        x, y = found["grid"]["rtt_ms"], 100 * np.array(found["grid"]["loss"])
        axes.contourf(x, y, overshoot, levels, colors=colors)
        axes.contour(x, y, overshoot, [20], colors=[theme.ink], linewidths=3)
        for at, label in (
            (5.5, "under 5 %"),
            (14.0, "5–20 %"),
            (19, "20–50 %"),
            (27.5, "50–100 %"),
            (42, "over 100 %"),
        ):
            axes.text(at, 30, label, ha="center", va="center", size=17, weight="bold")
        axes.set(
            xlabel="round-trip time (ms)", ylabel="loss in each direction (%)", xlim=(0, 50), ylim=(0, 60)
        )

    drawn("map", 760, draw)


def main() -> None:
    """Draws all, or those that are named."""
    pictures = {
        "arm": arm,
        "time": time,
        "board": board,
        "delay": delay,
        "sweep": sweep,
        "plot": plot,
        "controller": controller,
        "search": search,
        "map": stability,
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or pictures:
            pictures[name](Path(folder))


if __name__ == "__main__":
    main()
