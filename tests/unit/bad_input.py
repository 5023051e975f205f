"""What the tests of refused scenarios share: texts to spoil, a folder of files to name wrongly, and the message."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import check, load
from tcpsbed.scenarios.compile import builtins

KNOWN = {"hooks": ["zoh", "arm3"], "robots": ["arm", "wall_mass"], "transports": ["udp"]}
TIME = 'a span of time such as "15 ms" (ns, us, ms, s, min, h)'
RATE = 'a bit rate such as "1.5 Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s)'
SIZE = 'a size such as "1500 B" (B, kB, MB, KiB, MiB)'
ENDS = "tactile-operator, tactile-teleoperator"
FLOW = '[components]\ntactile-operator = "a"\ntactile-teleoperator = "b"\n[flows.kinematic]\n'  # lines 1 to 4
LINK = FLOW + '[links.l1]\nfrom = "a"\nto = "b"\n'  # lines 5 to 7
CBR = LINK + '[traffic.cbr]\non = "l1"\n'  # lines 8 and 9
HOOK = FLOW + '[hooks.predict]\nat = "tactile-operator"\n'  # lines 5 and 6


def refusal(folder: Path, text: str, *overrides: str) -> str:
    """The message that refuses a scenario, read from the file `bad.toml`."""
    path = folder / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with mock.patch.object(builtins, "known", lambda: KNOWN), pytest.raises(ConfigError) as error:
        check(load(path, overrides))
    return str(error.value)


def folder_of_files(folder: Path) -> Path:
    """The folder, with files in it that are no library, no graph, no calibration, or not of the right kind."""
    (folder / "text.so").write_text("text")
    (folder / "mod.py").write_text("class Zoh: pass\nOther = Zoh\n")
    (folder / "boom.py").write_text("raise ValueError('no')\n")
    (folder / "plain.csv").write_text("1\n2\n")
    (folder / "timed.csv").write_text("t,x\n0,1\n1,2\n")
    for name, (a, b) in {"loop": ("A", "A"), "twice": ("B", "A")}.items():
        nodes = '<graphml><graph><node id="A"/><node id="B"/><edge source="A" target="B"/>'
        (folder / f"{name}.graphml").write_text(f'{nodes}<edge source="{a}" target="{b}"/></graph></graphml>')
    for name, quantiles in {"falling": [5, 3], "negative": [-1, 3]}.items():
        stages = {"stages": {"srv.work": {"quantiles_ns": quantiles}}}
        (folder / f"{name}.json").write_text(json.dumps(stages))
    return folder
