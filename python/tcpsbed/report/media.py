"""What has to be said of pictures and sound wherever their numbers are shown."""

from __future__ import annotations

VARIANT = (
    "SSIM in plain windows of 8 x 8 that slide by 4: the Gaussian windows of Wang et al. (2004) give up to 0.04 less on "
    "coded pictures"
)
"""Which SSIM this is, wherever it is shown."""
REMARK = (
    "Age counts from glass to glass, and from mouth to ear. That of a picture is read from a code that was drawn into it "
    "when it was taken, that of sound from a mark that was laid over it: nothing of it assumed. PSNR and SSIM compare what "
    f"was shown with what was taken. {VARIANT}."
)
