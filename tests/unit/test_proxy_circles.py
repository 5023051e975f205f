"""A proxy that leads back to itself is refused, however its address is spelt."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tcpsbed.errors import ConfigError
from tcpsbed.proxy import Proxy, circles, load
from tcpsbed.proxy.door import Door, parse

CIRCLES = [
    ["7000=127.0.0.1:7000"],
    ["7000=localhost:7000"],
    ["0.0.0.0:7000=127.0.0.1:7000"],
    ["0.0.0.0:7000=127.9.9.9:7000"],
    ["0.0.0.0:7000=0.0.0.0:7000"],
    ["[::1]:7000=[::1]:7000"],
    ["[::1]:7000=[0:0:0:0:0:0:0:1]:7000"],
    ["[::]:7000=127.0.0.1:7000"],
    ["127.0.0.1:7000=[::ffff:127.0.0.1]:7000"],
    ["7000=127.0.0.1:7000/tcp"],
    ["7000=127.0.0.1:7001", "7001=127.0.0.1:7000"],
    ["7000=127.0.0.1:7001", "7001=127.0.0.1:7002", "7002=127.0.0.1:7000"],
]
WAYS = [
    ["7000=127.0.0.1:7001"],
    ["7000=127.0.0.1:7000/udp", "7000=127.0.0.1:7001/tcp"][1:],
    ["127.0.0.1:7000=127.0.0.2:7000"],
    ["0.0.0.0:7000=192.0.2.1:7000"],
    ["7000=127.0.0.1:7001", "7001=127.0.0.1:7002"],
    ["7000=127.0.0.1:7001/udp", "7001=127.0.0.1:7000/tcp"],
    ["0=127.0.0.1:7000"],
]


def refusal(written: list[str]) -> str:
    """Why these ports are refused; empty if they are not."""
    try:
        circles.refuse([parse(text) for text in written], [])
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("written", CIRCLES, ids=" ".join)
def test_a_circle_is_refused(written):
    said = refusal(written)
    assert re.search(r"PORT=TARGET: found 700.*leads back to itself.*allowed: the port of a server", said), (
        said
    )


@pytest.mark.parametrize("written", WAYS, ids=" ".join)
def test_a_way_is_not(written):
    assert refusal(written) == ""


def test_a_circle_over_a_proxy_of_another_command_is_refused():
    """Its process says on its command line where it listens; nothing else is known of it."""
    words = [sys.executable, "-c", "input()", "tcpsbed", "proxy", "--delay", "1 ms", "47001=127.0.0.1:47000"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as other:
        try:
            assert Door("udp", ("127.0.0.1", 47001), ("127.0.0.1", 47000)) in circles.elsewhere()
            with pytest.raises(ConfigError, match="leads back to itself over another port"):
                Proxy(load("direct"), [parse("47000=127.0.0.1:47001")])
        finally:
            other.stdin.close()
