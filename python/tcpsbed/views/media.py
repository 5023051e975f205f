"""The remark beside numbers of pictures and sound."""

from __future__ import annotations

VARIANT = (
    "SSIM in plain windows of 8 x 8 that slide by 4: the Gaussian windows of Wang et al. (2004) give up to 0.04 less on "
    "coded pictures"
)
"""Which SSIM this is, wherever it is shown."""
REMARK = (
    "Age is glass to glass, or mouth to ear. For a picture it is read from a code drawn into it at capture, for sound "
    f"from a mark mixed into it. PSNR and SSIM compare shown with captured frames. {VARIANT}."
)
