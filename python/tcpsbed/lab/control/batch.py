"""The batch engine's interface in Python: cells in, results out (`crates/tcps-run/src/batch`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from tcpsbed import _tcps, executors, linear
from tcpsbed.errors import DataError
from tcpsbed.lab.control.response import Step
from tcpsbed.lab.control.verdict import Limits

PORTION = 64
"""Cells handed over at a time, so that progress is seen and Ctrl-C is heard."""

Answers = Literal["ticks", "commands"]


@dataclass(frozen=True)
class Cell:
    """One setting; times in ms, loss as the plan of a link has it; a controller in place of the gains as a plan has it."""

    period_ms: float
    there_ms: float
    back_ms: float
    kp: float
    ki_per_ms: float
    loss: dict[str, Any] | None = None
    jitter: dict[str, Any] | None = None
    reorder: bool = False
    phases: bool = False
    controller: dict[str, Any] | None = None


@dataclass(frozen=True)
class Bench:
    """What all cells share: the step, the length and number of runs, the limits, what makes the far side answer; and the
    places of the axes that jump, one after the other, of which each figure is the largest.
    """

    step: Step = field(default_factory=Step)
    runs: int = 200
    duration_ms: float = 2000.0
    seed: int = 1
    limits: Limits = field(default_factory=Limits)
    answers: Answers = "ticks"
    axes: tuple[int, ...] = (0,)

    @property
    def several(self) -> int:
        """How many axes the loop has, if there are several; or else 0."""
        size = None if self.step.plant is None else linear.shape(self.step.plant)
        return 0 if size is None else size[0]

    @property
    def jumps(self) -> str:
        """The axes that jump, in words; empty where there is one."""
        if not self.several:
            return ""
        return "every axis" if len(self.axes) == self.several else f"axis {self.axes[0] + 1}"

    def run(
        self,
        cells: Sequence[Cell],
        *,
        keep: bool = False,
        progress: Callable[[float], object] | None = None,
        executor: Executor | None = None,
    ) -> list[dict[str, Any]]:
        """The figures of every cell, in their order.

        Parameters
        ----------
        cells
            The grid.
        keep
            Whether each run's figures are given, too, as `runs`.
        progress
            Called with the share done.
        executor
            Runs portions of the cells, each on one core; absent: one after the other, each on all cores.

        Returns
        -------
        list of dict
            For each cell `good` and, for `rise_ms`, `overshoot`, `undershoot`, `settling_ms` and `error`, the
            number `n`, `mean` and `sd` of the runs that have one.
        """
        portions = [cells[first : first + PORTION] for first in range(0, len(cells), PORTION)]
        threads = None if executor is None else 1
        every = executors.each(
            executor,
            [partial(self._portion, portion, keep, threads) for portion in portions],
            lambda done, _number, _found: progress and progress(done / len(portions)),
        )
        return [figures for portion in every for figures in portion]

    def _portion(self, cells: Sequence[Cell], keep: bool, threads: int | None) -> list[dict[str, Any]]:
        if self.several:
            from tcpsbed.lab.control import lanes

            return lanes.run(self, cells, keep=keep)
        limits = {key: value for key, value in vars(self.limits).items() if value != float("inf")}
        spec = {
            "seed": self.seed,
            "runs": self.runs,
            "duration_ms": self.duration_ms,
            "c": self.step.c,
            "t0_ms": self.step.t0_ms,
            "disturbance": self.step.disturbance,
            "answers": self.answers,
            "limits": limits,
            "keep": keep,
            "threads": threads,
            "cells": [vars(cell) for cell in cells],
        } | ({"plant": self.step.plant} if self.step.plant else {})
        results: list[dict[str, Any]] = json.loads(_tcps.step_batch(json.dumps(spec)))
        return results


def bursty(share: float, length: float) -> dict[str, Any] | None:
    """Loss of a share of the packets in bursts of a mean length, or single ones for length 1.

    Gilbert's model: everything is lost in the bad state, which is left after `length` packets on average.

    Examples
    --------
    >>> bursty(0.5, 4)
    {'kind': 'gilbert-elliott', 'p': 0.25, 'r': 0.25, 'loss_good': 0.0, 'loss_bad': 1.0}
    """
    if share <= 0:
        return None
    if length <= 1 or share >= 1:
        return {"kind": "random", "p": share}
    r = 1 / length
    p = r * share / (1 - share)
    if p > 1:
        raise DataError(
            f"found bursts of {length:g} packets at {100 * share:g} % loss",
            key="--bursts",
            allowed=f"bursts of at least {share / (1 - share):.3g} packets at this loss",
        )
    return {"kind": "gilbert-elliott", "p": p, "r": r, "loss_good": 0.0, "loss_bad": 1.0}
