"""Pictures and sound; `tcpsbed.analysis.media` finds the numbers in the rows."""

from __future__ import annotations

from tcpsbed.analysis.metrics.metric import Metric, spread

MEDIA = (
    Metric("kind", "`picture` or `sound`"),
    Metric("shown", "frames shown after the warm-up", "count"),
    Metric("shown_per_s", "how many a second", label="a second"),
    Metric("coded_bytes", "mean size of a coded frame, where it leaves the component that codes it", "B",
        label="coded"),
    Metric("coded_bps", "bit rate of all, there", "bit/s", label="bit rate"),
    spread("mouth_to_ear_ms", "of sound with `mark`: distribution of the age at which the mark was heard,"
        " one a second, by the clocks of the two nodes, with what a speaker of the machine says that it"
        " holds back; null without marks", label="sound age"),
    Metric("loudness_db", "of sound: mean level in dB of full scale", "dB", label="loudness"),
    Metric("unread", "pictures whose code could not be read", "count", rare=True),
    Metric("repeated", "pictures whose number had been shown before", "count", rare=True),
    spread("glass_to_glass_ms", "distribution of the age at which pictures were shown, from the time drawn"
        " into each when it was taken, by the clocks of the two nodes; without those that were compared,"
        " since comparing takes its time, unless all were", label="age"),
    Metric("psnr_db", "mean over the frames that were compared; null where nothing differs", "dB",
        label="PSNR"),
    Metric("ssim", "mean over the frames that were compared", label="SSIM"),
)  # fmt: skip
SECTIONS = (
    Metric("media", "by flow: pictures and sound; empty without flows that show something",
        of=lambda source: source.get("media", {}), parts=MEDIA, each="flow", label="Pictures and sound"),
)  # fmt: skip
