"""Pictures and sound; `tcpsbed.analysis.media` finds the numbers in the rows."""

from __future__ import annotations

from tcpsbed.analysis.metrics.metric import Metric, spread

MEDIA = (
    Metric("kind", "`picture` or `sound`"),
    Metric("shown", "frames shown after the warm-up", "count"),
    Metric("shown_per_s", "frame rate", label="frames/s", type="float"),
    Metric("coded_bytes", "mean size of a coded frame, at the exit of the component that codes it", "B",
        label="coded"),
    Metric("coded_bps", "bit rate of coded frames, at the same place", "bit/s", label="bit rate"),
    spread("mouth_to_ear_ms", "of sound with `mark`: distribution of the age of the mark when heard, once a"
        " second, by the clocks of the two nodes, including the reported delay of a"
        " loudspeaker of this machine; null without marks", label="sound age"),
    Metric("loudness_db", "of sound: mean level in dB of full scale", "dB", label="loudness"),
    Metric("unread", "pictures whose time blocks could not be read", "count", rare=True),
    Metric("repeated", "pictures whose number had been shown before", "count", rare=True),
    spread("glass_to_glass_ms", "distribution of the age of pictures when shown, from the capture time drawn"
        " into each, by the clocks of the two nodes. Pictures that were compared are left out, because comparing"
        " delays them; if all were compared, all count", label="age"),
    Metric("psnr_db", "mean over the compared frames; null if nothing differs", "dB",
        label="PSNR"),
    Metric("ssim", "mean over the compared frames", label="SSIM", type="float"),
)  # fmt: skip
SECTIONS = (
    Metric("media", "by flow: pictures and sound; empty without displays",
        of=lambda source: source.get("media", {}), parts=MEDIA, each="flow", label="Pictures and sound"),
)  # fmt: skip
