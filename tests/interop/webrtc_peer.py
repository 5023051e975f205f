"""One of two WebRTC peers on aiortc with a data channel that sends nothing again: `offer COUNT`, or `answer`.

Signalling is one line of JSON each way on standard output and input, so that whoever stands between can put a proxy into the
answer: `{"sdp": …}`. At the end `offer` prints what came back: `{"trips_ms": […]}`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription

PERIOD_S = 0.02
OPEN_S = 30.0
SILENT_S = 2.0


def say(**words: object) -> None:
    """Prints a line."""
    print(json.dumps(words), flush=True)


async def hear() -> dict:
    """The next line."""
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    if not line:
        sys.exit("input ended")
    return json.loads(line)


def peer() -> RTCPeerConnection:
    """A peer that asks no server for its address."""
    return RTCPeerConnection(RTCConfiguration(iceServers=[]))


async def offer(count: int) -> None:
    """Asks, sends `count` messages, and tells how long each took there and back."""
    own, opened, trips = peer(), asyncio.Event(), {}
    channel = own.createDataChannel("hand", ordered=False, maxRetransmits=0)
    channel.on("open", opened.set)

    @channel.on("message")
    def back(text: str) -> None:
        index, sent_ns = map(int, text.split())
        trips[index] = (time.monotonic_ns() - sent_ns) / 1e6

    await own.setLocalDescription(await own.createOffer())
    say(sdp=own.localDescription.sdp)
    await own.setRemoteDescription(RTCSessionDescription((await hear())["sdp"], "answer"))
    await asyncio.wait_for(opened.wait(), OPEN_S)
    for index in range(count):
        channel.send(f"{index} {time.monotonic_ns()}")
        await asyncio.sleep(PERIOD_S)
    await asyncio.sleep(SILENT_S)
    say(trips_ms=list(trips.values()))
    await own.close()


async def answer() -> None:
    """Answers, and sends back every message until input ends."""
    own = peer()

    @own.on("datachannel")
    def arrived(channel: RTCDataChannel) -> None:
        channel.on("message", channel.send)

    await own.setRemoteDescription(RTCSessionDescription((await hear())["sdp"], "offer"))
    await own.setLocalDescription(await own.createAnswer())
    say(sdp=own.localDescription.sdp)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await own.close()


if __name__ == "__main__":
    asyncio.run(offer(int(sys.argv[2])) if sys.argv[1] == "offer" else answer())
