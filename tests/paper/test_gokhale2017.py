"""Gokhale 2017: the acceptance list, by the short sweeps of `tcpsbed reproduce`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tcpsbed.reproduce import bounds, contact, dumbbell
from tcpsbed.reproduce.study import Row, Study

WORK = "gokhale2017"
TOTALS = (460, 560, 660, 672, 700, 750, 761, 800)
"""Cross traffic at which the bound is asked for, in kbit/s."""
NOT_WITHIN = {
    "jitter-video",
    "low-rates",
    "bound-700",
    *(f"eq7-{t}" for t in TOTALS),
}
"""What the profile does not give: one maximum of jitter that hangs on the phases of frames; DPM's rate under a trickle of
cross traffic, whose packets raise false alarms; the bound where two fragments a packet are 2 % too much, which passes for
steady beside packets of 50 B, though not in the fluid; equation 7 as printed, which is below what it bounds."""


# [PROTOCOLS 2.1]
def test_rates_of_every_k_are_exact(rows: dict[str, Row]) -> None:
    keys = [f"rate-{way}-k{k}" for way in ("backward", "forward") for k in range(1, 5)]
    assert [rows[key].within for key in keys] == [True] * 8


# [PROTOCOLS 2.10]
def test_the_largest_haptic_delay_at_400_is_the_published_one(rows: dict[str, Row]) -> None:
    assert rows["peak-haptic"].within
    assert rows["peak-haptic-profile"].ours == pytest.approx(29.54, abs=0.3)
    assert rows["jitter-haptic"].within and rows["peak-audio"].within and rows["peak-video"].within


# [PROTOCOLS 13.3]
def test_the_acceptance_list_holds_but_for_what_is_known(rows: dict[str, Row]) -> None:
    assert rows["loss-400"].ours == 0.0 < (rows["loss-410"].ours or 0.0)
    assert rows["no-merge-4"].ours == 0.0 < (rows["no-merge-8"].ours or 0.0)
    assert rows["no-merge-400"].ours == pytest.approx(20.9, abs=0.5)
    assert (rows["multistep"].ours or 0.0) > 30.0 > (rows["peak-haptic"].ours or 99.0)
    held = [key for key in rows if key.startswith(("phase-", "holdup", "bound-")) and key not in NOT_WITHIN]
    assert [key for key in held if not rows[key].within] == []


# [PROTOCOLS 2.11] [PROTOCOLS 13.3]
def test_in_a_fluid_the_corrected_bound_holds_everywhere(rows: dict[str, Row]) -> None:
    assert [total for total in TOTALS if not rows[f"bound-fluid-{total}"].within] == []
    assert (rows["bound-700"].ours or 0.0) > (rows["bound-fluid-700"].ours or 99.0) + 5.0, (
        "beside packets of 50 B it does not"
    )


# [PROTOCOLS 3.2]
def test_reports_every_half_second_come_too_late(rows: dict[str, Row]) -> None:
    assert 1.0 < (rows["rtcp-reaction"].ours or 0.0) < 1.1
    assert (rows["rtcp-peak"].ours or 0.0) > 90.0


# [PROTOCOLS 1.7] [PROTOCOLS 3.3] [PROTOCOLS 3.4]
def test_merging_keeps_more_of_a_force_than_adaptive_sampling(rows: dict[str, Row]) -> None:
    assert (rows["snr-weber"].ours or 0.0) > 3.0, "a deadband of 12 % alone costs 18 dB"
    assert "loses 0.0 %" in rows["visual-haptic"].reason, "a capacity that is known is kept"


# [PROTOCOLS 3.5]
def test_nafcah_violates_the_limit_and_dpm_does_not(rows: dict[str, Row]) -> None:
    assert all(rows[key].within for key in ("nafcah", "nafcah-dpm", "nafcah-fixed"))


def test_a_generated_contact_is_one() -> None:
    time, force = contact.generated()[:, 0], contact.generated()[:, 1:]
    assert len(time) == 25_000 and (force[:, 2] >= 0.0).all()
    touched = force[:, 2] > 0.0
    assert np.count_nonzero(np.diff(touched.astype(int)) == 1) >= contact.CONTACTS - 1
    assert 0.4 < touched.mean() < 0.6 and 1.0 < force.max() < 5.0


# [PROTOCOLS 2.12]
def test_pottery_is_felt_and_seen_by_merging_only(rows: dict[str, Row]) -> None:
    assert all(row.within for key, row in rows.items() if key.startswith("pottery-"))
    assert (rows["pottery-no-merge-pictures"].ours or 0.0) > 30.0


def test_what_is_not_within_is_known(study: Study) -> None:
    # Over one round of the recording of 25 s the hold-up is 0.3 dB behind; over four, in full, it is ahead.
    known = NOT_WITHIN | ({"snr-holdup"} if contact.RECORDED.exists() else set())
    assert {row.key for row in study.rows if row.within is False} == known
    assert {row.key for row in study.rows if row.within is None} == {"snr", "visual-haptic"}


def test_rows_are_json_and_figures_are_files(study: Study) -> None:
    told = json.loads(json.dumps([row.to_json() for row in study.rows]))
    assert set(told[0]) == {
        "item",
        "key",
        "published",
        "compare",
        "basis",
        "ours",
        "tolerance",
        "within",
        "reason",
    }
    assert study.out is not None and len(study.figures) >= 8
    assert all((study.out / f"{name}.png").stat().st_size > 10_000 for name, _ in study.figures)


# [PROTOCOLS 2.11]
@pytest.mark.parametrize(
    ("cross", "printed", "corrected"),
    [(460, 17.47, 21.32), (560, 20.14, 23.99), (672, 23.22, 27.07), (700, 17.88, 20.73), (800, 19.43, 21.28)],
)
def test_the_bounds_are_those_of_the_equations(cross: int, printed: float, corrected: float) -> None:
    assert bounds.printed_ms(cross) == pytest.approx(printed, abs=0.006)
    assert bounds.corrected_ms(cross) == pytest.approx(corrected, abs=0.006)
    assert bounds.printed_ms(300.0) == 15.0


# [PROTOCOLS 2.11]
@pytest.mark.parametrize("cross", [690.0, 710.0, 735.0])
def test_the_bound_holds_if_half_a_millisecond_of_queue_is_not_steady(study: Study, cross: float) -> None:
    def peak(steady_below: str) -> float:
        case = dumbbell.Case("dpm-g", cross - 400.0, 10.0, f"steady_below='{steady_below}'")
        return dumbbell.run(study, case).peak("haptic", 5.0)

    bound = bounds.corrected_ms(cross)
    assert peak("0.5 ms") == pytest.approx(bound, abs=1.5)
    assert bound + 5.0 < peak("1 ms") < 30.0, "a queue that grows slowly passes for steady, and k falls to 1"
