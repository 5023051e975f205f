"""GStreamer's side of an RTP session, run by the system's Python: prints what its `rtpbin` counted as JSON.

`gst_peer.py audio|video send|receive LOCAL-PORT PEER-PORT SECONDS`: RTP on the given port, RTCP on the next.
"""

from __future__ import annotations

import json
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

MEDIA = {
    "audio": (
        "audiotestsrc is-live=true samplesperbuffer=160 ! audio/x-raw,rate=8000,channels=1 ! mulawenc"
        " ! rtppcmupay min-ptime=20000000 max-ptime=20000000",
        "application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0",
        "rtppcmudepay",
    ),
    "video": (
        "filesrc location={clip} ! qtdemux ! identity sync=true ! rtpmp4vpay pt=96 config-interval=1",
        "application/x-rtp,media=video,clock-rate=90000,encoding-name=MP4V-ES,payload=96",
        "rtpmp4vdepay",
    ),
}

REPORTED = ("have-rb", "rb-ssrc", "rb-packetslost", "rb-exthighestseq", "rb-round-trip")


def pipeline(media: str, role: str, local: int, peer: int, clip: str) -> str:
    """The launch line."""
    pay, caps, depay = MEDIA[media]
    pay = pay.format(clip=clip)
    rtcp = (
        f"udpsrc address=127.0.0.1 port={local + 1} ! bin.recv_rtcp_sink_0 "
        f"bin.send_rtcp_src_0 ! udpsink host=127.0.0.1 port={peer + 1} sync=false async=false "
    )
    if role == "send":
        return (
            f"rtpbin name=bin {pay} ! bin.send_rtp_sink_0 "
            f"bin.send_rtp_src_0 ! udpsink host=127.0.0.1 port={peer} " + rtcp
        )
    return (
        f'rtpbin name=bin udpsrc address=127.0.0.1 port={local} buffer-size=2000000 caps="{caps}" '
        f"! bin.recv_rtp_sink_0 bin. ! {depay} ! fakesink name=sink sync=false async=false " + rtcp
    )


def sources(bin_: Gst.Element) -> list[dict[str, object]]:
    """Statistics of all sources that the session knows."""
    found = []
    stats = bin_.emit("get-internal-session", 0).get_property("stats")
    for source in stats.get_value("source-stats") or []:
        names = ("ssrc", "internal", "is-sender", "packets-received", "packets-lost", *REPORTED)
        found.append({n: source.get_value(n) for n in names if source.has_field(n)})
    return found


def main() -> None:
    """Runs the session and prints its statistics."""
    media, role, local, peer, seconds = sys.argv[1:6]
    clip = sys.argv[6] if len(sys.argv) > 6 else ""
    Gst.init(None)
    line = Gst.parse_launch(pipeline(media, role, int(local), int(peer), clip))
    loop = GLib.MainLoop()
    problems: list[str] = []
    bus = line.get_bus()
    bus.add_signal_watch()
    bus.connect("message::error", lambda _, m: (problems.append(str(m.parse_error())), loop.quit()))
    bus.connect("message::eos", lambda *_: loop.quit())
    GLib.timeout_add(int(float(seconds) * 1000), loop.quit)
    line.set_state(Gst.State.PLAYING)
    print("ready", flush=True)
    loop.run()
    print(json.dumps({"sources": sources(line.get_by_name("bin")), "problems": problems}), flush=True)
    line.set_state(Gst.State.NULL)


if __name__ == "__main__":
    main()
