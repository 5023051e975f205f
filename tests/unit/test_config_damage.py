"""Whatever is wrong with a scenario, it is told with what is allowed, or it does no harm."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from unittest import mock

from bad_input import CBR, KNOWN
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed.errors import TcpsbedError
from tcpsbed.scenarios import Scenario, check
from tcpsbed.scenarios.compile import builtins
from tcpsbed.scenarios.origin import Origin

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 70), st.floats(), st.text(max_size=4), st.just({}), st.just([]), st.just([[]]),
    st.sampled_from(["5 ms", "-5 ms", "1 kbit/s", "0 B", "3 packets", "5 %", "a", "l1", "all", "kinematic", "a->b", "udp"]),
    st.just({"kind": "normal"}), st.just({"kind": 3}), st.just({"": 1}),
)  # fmt: skip
WHOLE = tomllib.loads(
    CBR.replace(
        "[flows.kinematic]",
        '[flows.kinematic]\nrate = "1 kHz"\nsource = "generated"\nsample = "24 B"\nvia = []',
    )
    + 'rate = "1 kbit/s"\nkind = "cbr"\n[nodes.a]\ncores = 1\nclock = { offset = "1 ms" }\n[hooks.x]\nkind = "work"\n'
    'at = "tactile-operator"\ncost = "1 ms"\n[[events]]\nat = "1 s"\nlink = "l1"\nup = false\n[measure]\nqueues = "1 ms"\n'
    'echo = { points = ["all"], period = "10 ms" }\nsync = "1 s"\n[topology]\nrouters = ["n1"]\nrouting = "hops"\n'
    '[channels.c]\nflows = ["kinematic"]\ntransport = { kind = "udp", mtu = "500 B" }\n[real]\nspin = "1 us"\n'
)


def _places(tree: object, path: tuple = ()) -> list[tuple]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path] * bool(path) + [place for key, value in items for place in _places(value, (*path, key))]


@given(st.sampled_from(_places(WHOLE)), VALUES, st.sampled_from(["replace", "remove", "add"]))
def test_any_damage_to_a_scenario_is_told_or_harmless(place, value, how):
    tree = copy.deepcopy(WHOLE)
    above = tree
    for part in place[:-1]:
        above = above[part]
    if how == "remove":
        del above[place[-1]]
    elif how == "add" and isinstance(above, dict):
        above[f"{place[-1]}x"] = value
    else:
        above[place[-1]] = value
    with mock.patch.object(builtins, "known", lambda: KNOWN):
        try:
            check(Scenario.of(Origin(Path("damaged.toml"), tree)))
        except TcpsbedError as error:
            assert "; allowed: " in str(error)
