"""Replies of CoppeliaSim in CBOR, through the real client library, to the robot that stands for the simulator."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import numpy as np
import zmq
from coppeliasim_zmqremoteapi_client import RemoteAPIClient, cbor

from tcpsbed.errors import HookError
from tcpsbed.hooks import make_robot
from tcpsbed.robots import ROBOTS, coppelia

MODULES = ("tcpsbed.robots.coppelia",)
JSON = True
MS = 1_000_000


class Wire:
    """The socket: replies in their order, then silence."""

    def __init__(self, replies: list[bytes]) -> None:
        self.replies = replies

    def send(self, request: bytes) -> None:
        """A request must be a map with a function's name."""
        assert isinstance(cbor.loads(request)["func"], str)

    def recv(self) -> bytes:
        """The next reply."""
        if not self.replies:
            raise zmq.Again
        return self.replies.pop(0)

    def close(self) -> None:
        """Nothing is open."""

    term = close


def replies(data: bytes) -> list[bytes]:
    """A JSON list of replies; of anything else pieces, each behind its length."""
    try:
        said = json.loads(data)
        return [cbor.dumps(reply) for reply in (said if isinstance(said, list) else [said])]
    except (ValueError, RecursionError, OverflowError, TypeError):
        pieces, at = [], 0
        while at < len(data):
            pieces.append(data[at + 1 : at + 1 + data[at]])
            at += 1 + data[at]
        return pieces


def client(wire: Any) -> Any:
    """The library's client on such a socket."""
    made = RemoteAPIClient.__new__(RemoteAPIClient)
    made.__dict__.update(
        verbose=0, socket=wire, context=wire, uuid="fuzz", callbackFuncs={}, requiredItems={}
    )
    made.__dict__.update(VERSION=2, timeout=600, sendCnt=0)
    return made


def target(data: bytes) -> None:
    """A robot with two joints and a force sensor, a few steps, and its end."""
    wire = Wire(replies(data))
    sense = np.zeros(9)
    with (
        patch.object(coppelia, "_connected", lambda *where: client(wire).require("sim")),
        suppress(HookError),
    ):
        robot = make_robot(*ROBOTS["coppeliasim"], {"joints": ["/a", "/b"], "sensors": ["/force"]})
        assert robot.tick_ns > 0
        robot.may_lag = True
        for t_ms in (0, 5, 12):
            n = robot.step(t_ms * MS, np.array([0.1, -0.2]), sense)
            assert n == 5 and np.isfinite(sense).all()
        robot.arrived()
        robot.close()
