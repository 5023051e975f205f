"""Leads one subject through a study: pages, answers, runs and saved ratings.

```text
 training ─► [ reference ─► condition ─► rating ─► saved ] for each condition that this subject has not rated
             each presentation begins when the subject says so
```
What goes to the page says which presentation it is and never which condition.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tcpsbed.lab.study.order import order
from tcpsbed.lab.study.plan import Study
from tcpsbed.lab.study.ratings import GRADES, SCALES, Rating, Store, grades_of

FAREWELL_S = 5.0
"""Longest time for which the last page is waited for."""


@dataclass(frozen=True)
class Measured:
    """What was measured of a presentation (see `Rating`)."""

    delay_ms: dict[str, float] = field(default_factory=dict)
    glass_ms: float | None = None
    disturbances: int = 0


Present = Callable[[str | None, int, Path], Measured]
"""Runs a condition (`None`: the reference) for nanoseconds into a folder."""
Notify = Callable[[dict[str, Any]], None]
"""Shows something to the subject."""


class Conductor:
    """One subject's course through a study.

    Parameters
    ----------
    study, store
        What is compared, and where ratings go.
    subject
        From 1 on.
    present, notify
        What runs a presentation, and what shows the subject where it is.
    gone
        How often a browser has gone away so far.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        subject: int,
        present: Present,
        notify: Notify,
        gone: Callable[[], int] = lambda: 0,
    ) -> None:
        self.study, self.store, self.subject = study, store, subject
        self.present, self.notify, self.gone = present, notify, gone
        self.order = order(list(study.conditions), subject, study.seed)
        self.answers: queue.Queue[Any] = queue.Queue()
        self._lock = threading.Lock()
        self._step, self._awaited = 0, ""

    def lead(self) -> int:
        """Goes through all that is left; gives the number of ratings that came."""
        rated = self.store.of(self.subject)
        left = [(place, name) for place, name in enumerate(self.order, 1) if name not in rated]
        if left and self.study.training_ns:
            self._show("training", None, self.study.training_ns, "training", 0)
        for place, name in left:
            self._compare(place, name)
        with suppress(queue.Empty):  # the page has shown it, or is not there
            self._ask("done", 0, wait_s=FAREWELL_S)
        return len(left)

    def hear(self, said: dict[str, Any]) -> None:
        """Takes an answer of the page.

        Raises
        ------
        ValueError, KeyError
            If it is not the answer to what was asked last.
        """
        with self._lock:
            if not self._awaited or said["n"] != self._step or said["do"] != self._awaited:
                raise ValueError("answer")
            given = grades_of(said["grades"]) if self._awaited == "rate" else None
            self._awaited = ""
        self.answers.put(given)

    def fail(self, error: Exception) -> None:
        """Ends the study in the thread that leads it."""
        self.answers.put(error)

    def _compare(self, place: int, name: str) -> None:
        """Shows the reference and a condition, asks, and saves."""
        if self.study.pairs:
            self._show("reference", None, self.study.duration_ns, f"{place}-reference", place)
        gone = self.gone()
        run = f"{place}-condition"
        measured = self._show("condition", name, self.study.duration_ns, run, place)
        grades = self._ask("rate", place)
        self.store.save(
            Rating(
                self.subject,
                place,
                name,
                grades,
                datetime.now(UTC).isoformat(timespec="seconds"),
                str(self._folder(run).relative_to(self.store.folder)),
                measured.delay_ms,
                measured.glass_ms,
                measured.disturbances,
                self.gone() - gone,
            )
        )

    def _show(self, what: str, name: str | None, length_ns: int, run: str, place: int) -> Measured:
        """Waits until the subject is ready, and runs."""
        self._ask("go", place, what=what, seconds=length_ns / 1e9)
        self._tell("run", place, what=what, seconds=length_ns / 1e9)
        measured = self.present(name, length_ns, self._folder(run))
        self._tell("wait", place)
        return measured

    def _folder(self, run: str) -> Path:
        return self.store.folder / f"subject-{self.subject:03}" / run

    def _ask(self, wanted: str, place: int, wait_s: float | None = None, **more: Any) -> Any:
        with self._lock:
            self._step, self._awaited = self._step + 1, wanted
        if wanted == "rate":
            more |= {"scales": SCALES, "grades": [[grade, text] for grade, text in GRADES.items()]}
        self._tell(wanted, place, **more)
        answer = self.answers.get(timeout=wait_s)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _tell(self, phase: str, place: int, **more: Any) -> None:
        about = {"k": "study", "phase": phase, "n": self._step, "place": place, "of": len(self.order)}
        self.notify(about | {"instructions": self.study.instructions} | more)
