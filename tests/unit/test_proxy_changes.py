"""What is told as changed while an emulated network ran: values that are others than before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tcpsbed import proxy
from tcpsbed.proxy import netns
from tcpsbed.proxy import proxy as running
from tcpsbed.proxy.changes import Changes
from tcpsbed.proxy.door import parse

LINK = {"name": "l", "rate_bps": 1e6, "delay_ns": 5, "loss": {"kind": "random", "p": 0.01}}


@pytest.mark.parametrize(
    ("link", "action", "found"),
    [
        (LINK, {"loss": 0.01, "rate_bps": 1e6, "delay_ns": 5}, {}),
        (LINK, {"loss": None, "delay_ns": None}, {}),
        (LINK, {"loss": 0.02, "rate_bps": 1e6}, {"l": ["loss"]}),
        ({"name": "l"}, {"loss": 0.0, "delay_ns": 0}, {}),
        ({"name": "l"}, {"loss": 0.01, "rate_bps": 1e6}, {"l": ["rate_bps", "loss"]}),
        (LINK | {"loss": {"kind": "gilbert-elliott", "p": 0.01, "r": 0.5}}, {"loss": 0.01}, {"l": ["loss"]}),
    ],
)
def test_an_event_changes_what_the_network_before_it_had_otherwise(
    link: dict[str, Any], action: dict[str, Any], found: dict[str, list[str]]
) -> None:
    changes = Changes()
    changes.event({"action": {"kind": "link", "links": [0], **action}}, {"links": [link]})
    assert changes.found == found


@pytest.mark.parametrize("behind", [False, True])
def test_a_network_at_work_compares_an_event_with_its_profile(
    monkeypatch: pytest.MonkeyPatch, behind: bool
) -> None:
    profile = proxy.load("direct", ["links.path.loss=1 %"])
    native = SimpleNamespace(event=lambda *_: None)
    monkeypatch.setattr(running, "_tcps", SimpleNamespace(Proxy=lambda _: native))
    monkeypatch.setattr(netns.Behind, "_order", lambda *_, **__: None)
    if behind:
        found: Any = netns.Behind.__new__(netns.Behind)
        found.profile, found._changes = profile, Changes()
    else:
        found = running.Proxy(profile, [parse("0=127.0.0.1:7100/udp")])
    for share, told in ((0.01, {}), (0.02, {"path.forward": ["loss"]}), (0.01, {"path.forward": ["loss"]})):
        loss = {"kind": "random", "p": share}
        links = [link | {"loss": loss} for link in profile.network["links"]]
        line = {"action": {"kind": "link", "links": [0], "loss": share}}
        found.event(line, profile.network | {"links": links})
        assert found._changes.found == told
