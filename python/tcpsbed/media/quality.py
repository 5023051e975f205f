"""Quality of a picture: PSNR, and SSIM (after Wang, Bovik, Sheikh, Simoncelli 2004).

SSIM here is not the variant of that paper, which weights windows of 11 x 11 by a Gaussian around every pixel: windows are
plain, 8 x 8, four pixels apart. Its values are up to 0.04 higher on coded pictures, in the same order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.float32]

PEAK = 255.0
WINDOW = 8
"""Side of the windows of SSIM, without weights; they overlap by half, as coders have it that compute it."""
LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue (ITU-R BT.601)."""


def psnr_db(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Peak signal-to-noise ratio over all colours of two frames of the same shape; infinite where they are equal."""
    error = float(np.mean((a.astype(np.float32) - b.astype(np.float32)) ** 2))
    return float("inf") if error == 0.0 else 10.0 * float(np.log10(PEAK**2 / error))


# [Wang 2004]
def ssim(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """Structural similarity of the brightness of two frames, the mean over windows that slide by half; 1 where equal."""
    x, y = _luma(a), _luma(b)
    c1, c2 = np.float32((0.01 * PEAK) ** 2), np.float32((0.03 * PEAK) ** 2)
    mean_x, mean_y = _sliding(x), _sliding(y)
    n = WINDOW * WINDOW
    unbiased = np.float32(n / (n - 1.0))
    var_x = (_sliding(x * x) - mean_x * mean_x) * unbiased
    var_y = (_sliding(y * y) - mean_y * mean_y) * unbiased
    both = (_sliding(x * y) - mean_x * mean_y) * unbiased
    top = (2 * mean_x * mean_y + c1) * (2 * both + c2)
    below = (mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2)
    return float(np.mean(top / below))


def _luma(frame: NDArray[np.uint8]) -> Plane:
    """Brightness."""
    red, green, blue = (np.float32(w) * frame[..., i] for i, w in enumerate(LUMA))
    brightness: Plane = red + green + blue
    return brightness


def _sliding(x: Plane) -> Plane:
    """Means over complete windows; a rest at the right and lower edge is ignored."""
    half = WINDOW // 2
    rows, columns = x.shape[0] // half, x.shape[1] // half
    blocks = x[: rows * half, : columns * half].reshape(rows, half, columns, half).mean(axis=(1, 3))
    pairs = blocks[1:] + blocks[:-1]
    part: Plane = (pairs[:, 1:] + pairs[:, :-1]) / np.float32(4.0)
    return part
