"""Pictures and sound in the summary: age from glass to glass, quality, bit rate.

The age of a picture is read from the picture itself when it is shown (`tcpsbed.media.picture_code`); the rows that
showing leaves hold it with the number in the picture, PSNR and SSIM (kind `signal`, exit of the last component).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed.analysis.records import KINDS, open_records
from tcpsbed.analysis.units import NS_PER_MS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXIT, SIGNAL = (1 + KINDS.index(kind) for kind in ("exit", "signal"))
AGE, NUMBER, PSNR, SSIM = range(4)
"""Numbers of the values that showing a picture leaves."""
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}


def media(folder: Path, plan: Mapping[str, Any], warmup_ns: int) -> dict[str, Any]:
    """What is known of every flow that shows something, by its name; empty without one, and then no row is read.

    Parameters
    ----------
    folder
        The run folder.
    plan
        The compiled scenario.
    warmup_ns
        Span at the beginning that is left out.
    """
    shown = [(number, flow) for number, flow in enumerate(plan["flows"]) if _has(flow, -1, "show")]
    if not shown:
        return {}
    rows = open_records(folder / "records.bin")
    rows = rows[((rows["kind"] == SIGNAL) | (rows["kind"] == EXIT)) & (rows["time"] >= warmup_ns)]
    return {flow["name"]: _flow(rows[rows["flow"] == number], flow) for number, flow in shown}


def _has(flow: Mapping[str, Any], place: int, kind: str) -> bool:
    return any(step["kind"] == kind for step in flow["path"][place].get("steps", ()))


def _flow(rows: NDArray[np.void], flow: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    shown = rows[(rows["kind"] == SIGNAL) & (rows["point"] == 2 * flow["path"][-1]["component"] + 1)]
    age_ns, number = _values(shown, AGE), _values(shown, NUMBER)
    pictures = _pictures(flow)
    found: dict[str, Any] = {
        "kind": "picture" if pictures else "sound",
        "shown": len(age_ns),
        "shown_per_s": _per_second(shown),
        **_coded(rows, flow),
    }
    if not pictures:
        heard = age_ns[~np.isnan(age_ns)]
        return found | {
            "mouth_to_ear_ms": _distribution(heard / NS_PER_MS),
            "loudness_db": _mean(number),
        }
    read = number[~np.isnan(number)]
    ssim = _values(shown, SSIM)
    # Comparing holds the display up: a picture that was compared says nothing about age, unless all were.
    seen = age_ns[np.isnan(ssim)] if np.isnan(ssim).any() else age_ns
    return found | {
        "unread": len(number) - len(read),
        "repeated": len(read) - len(set(read.tolist())),
        "glass_to_glass_ms": _distribution(seen[~np.isnan(seen)] / NS_PER_MS),
        "psnr_db": _mean(_values(shown, PSNR)),
        "ssim": _mean(ssim),
    }


def _pictures(flow: Mapping[str, Any]) -> bool:
    return any(
        step["run"]["symbol"].startswith("Picture")
        for step in flow["path"][-1]["steps"]
        if step["kind"] == "show"
    )


def _values(rows: NDArray[np.void], which: int) -> NDArray[np.float64]:
    import numpy as np

    chosen = rows["value"][rows["detail"] == which]
    return np.ascontiguousarray(chosen).view(np.float64)


def _per_second(shown: NDArray[np.void]) -> float | None:
    times = shown["time"][shown["detail"] == AGE]
    span_ns = int(times[-1] - times[0]) if len(times) > 1 else 0
    return (len(times) - 1) * 1e9 / span_ns if span_ns else None


def _coded(rows: NDArray[np.void], flow: Mapping[str, Any]) -> dict[str, Any]:
    """Bytes of a coded frame and the bit rate of all, where they leave the component that codes them."""
    place = next(place for place in range(len(flow["path"])) if _has(flow, place, "code"))
    left = rows[(rows["kind"] == EXIT) & (rows["point"] == 2 * flow["path"][place]["component"] + 1)]
    if len(left) == 0:
        return {"coded_bytes": None, "coded_bps": None}
    span_ns = int(left["time"][-1] - left["time"][0])
    bits = 8.0 * float(left["size"][1:].sum())
    return {"coded_bytes": float(left["size"].mean()), "coded_bps": bits * 1e9 / span_ns if span_ns else None}


def _mean(values: NDArray[np.float64]) -> float | None:
    """The mean of what is finite: what equals the original has no signal-to-noise ratio."""
    import numpy as np

    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def _distribution(values: NDArray[np.float64]) -> dict[str, Any] | None:
    import numpy as np

    if len(values) == 0:
        return None
    quantiles = np.percentile(values, list(PERCENTILES.values()))
    return {
        "n": len(values),
        "min": float(values.min()),
        "mean": float(values.mean()),
        "sd": float(values.std()),
        **dict(zip(PERCENTILES, map(float, quantiles), strict=True)),
        "max": float(values.max()),
    }
