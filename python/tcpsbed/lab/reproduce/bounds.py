"""Bounds of the delays under DPM: equations 7 to 9 of Gokhale 2017, and a corrected form.

```text
k_opt = min{k : R_k + R_cross <= mu}      x = (R_cross + R_(k_opt - 1) - mu) / mu
d_inc = N (k_opt - 1) (1 + x) + 2 tau + 1                  time until congestion is seen
printed    d = tau + (k_opt - 1) + [N (k_opt - 1) + 2 tau + 1] x + N (k_opt - 1) x^2
corrected  d = tau + (k_max - 1) + gamma(k_max) + x d_inc
```
"""

from __future__ import annotations

MU_KBPS, TAU_MS, N, K_MAX = 1500.0, 15.0, 8, 4
PAYLOAD_KBPS, OVERHEAD_KBPS = 560.0, 536.0
PACKET_BYTES, OVERHEAD_BYTES = 70, 67


def rate_kbps(k: int) -> float:
    """Rate of the return path with `k` fragments per packet."""
    return PAYLOAD_KBPS + OVERHEAD_KBPS / k


def serialisation_ms(k: int) -> float:
    """Serialisation time of a packet of the return path on the bottleneck."""
    return (OVERHEAD_BYTES + k * PACKET_BYTES) * 8.0 / MU_KBPS


def _optimum(cross_kbps: float) -> tuple[int, float]:
    """`k_opt` and `x`; the latter is 0 where no merging is needed."""
    k = next((k for k in range(1, K_MAX) if rate_kbps(k) + cross_kbps <= MU_KBPS), K_MAX)
    x = (cross_kbps + rate_kbps(k - 1) - MU_KBPS) / MU_KBPS if k > 1 else 0.0
    return k, x


def printed_ms(cross_kbps: float) -> float:
    """Equation 7; `tau` where no merging is needed."""
    k, x = _optimum(cross_kbps)
    if k == 1:
        return TAU_MS
    return TAU_MS + (k - 1) + (N * (k - 1) + 2 * TAU_MS + 1) * x + N * (k - 1) * x * x


def corrected_ms(cross_kbps: float) -> float:
    """With the packetization and serialisation of the first packet after congestion, which holds `k_max` fragments."""
    k, x = _optimum(cross_kbps)
    detection_ms = N * (k - 1) * (1 + x) + 2 * TAU_MS + 1
    return TAU_MS + (K_MAX - 1) + serialisation_ms(K_MAX) + x * detection_ms


def audio_ms(haptic_ms: float) -> float:
    """Equation 8."""
    return haptic_ms + 160.0 / 58.0 + (K_MAX - 1)


def video_ms(haptic_ms: float) -> float:
    """Equation 9."""
    return haptic_ms + 1000.0 / 25.0 + (K_MAX - 1)
