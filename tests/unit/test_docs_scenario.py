"""The reference of the scenario file: it names every key there is, and all that it shows is right."""

from __future__ import annotations

import re
import struct
import wave
from pathlib import Path

import pytest

from tcpsbed import scenarios

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scenario.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.S | re.M)
MARK = "# excerpt\n"
# What stands in code spans and drawings, as words.
CODE = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PAGE) + re.findall(r"^```text\n(.*?)^```", PAGE, re.S | re.M)
WORDS = {word for code in CODE for word in re.findall(r"[\w-]+", code)}


def tables(schema):
    """Every table of a JSON Schema with its name; parameters of built-in code (`hook.zoh`) are drawn from its tables."""
    yield "the scenario", schema
    for name, definition in ((name, one) for name, one in schema["$defs"].items() if "." not in name):
        for table in definition.get("anyOf", [definition]):
            yield name, table


TABLES = list(tables(scenarios.schema()))


@pytest.mark.parametrize("name, table", TABLES)
def test_every_key_is_named(name, table):
    assert [key for key in table.get("properties", {}) if key not in WORDS] == [], name


@pytest.mark.parametrize("name, table", TABLES)
def test_every_choice_is_named(name, table):
    """Kinds of components and of everything else, disciplines, ways of waiting: all choices of all keys."""
    for key, value in table.get("properties", {}).items():
        choices = [choice for part in [value, *value.get("anyOf", ())] for choice in part.get("enum", ())]
        assert [choice for choice in choices if str(choice) not in WORDS] == [], f"{name}.{key}"


@pytest.fixture
def folder(tmp_path):
    """A folder with the scenario that parts are laid over, and the files that the page names."""
    (tmp_path / "base.toml").write_text(BLOCKS[0])
    (tmp_path / "motion.csv").write_text("t,x,y,z\n" + "".join(f"{i},{i},{-i},0\n" for i in range(12)))
    (tmp_path / "frames.csv").write_text("time bits\n".replace(" ", ",") + "0,8000\n0.04,16000\n")
    (tmp_path / "measured.csv").write_text("took_us\n11\n13\n12\n")
    (tmp_path / "delays.csv").write_text("from_ms,count\n0.1,5\n0.2,0\n0.5,2\n0.9,0\n")
    (tmp_path / "sizes.csv").write_text("cdf,flow_bytes\n0.2,100\n0.9,5000\n1,100000\n")
    (tmp_path / "web.csv").write_text("0.0,1500\n0.1,400\n")
    (tmp_path / "cellular.up").write_text("1\n2\n2\n5\n")
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    (tmp_path / "office.pcap").write_bytes(
        head + b"".join(struct.pack("<IIII", s, 0, 4, 60) + b"abcd" for s in (1, 2))
    )
    with wave.open(str(tmp_path / "speech.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(16000))
    return tmp_path


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_what_it_shows_is_right(folder, number):
    block = BLOCKS[number]
    path = folder / "shown.toml"
    path.write_text(f'include = "base.toml"\n{block}' if block.startswith(MARK) else block)
    scenarios.check(scenarios.load(path))


def test_what_set_shows_is_right(folder):
    (command,) = re.findall(r"^tcpsbed run bench.toml (.*)$", PAGE, re.M)
    found = [text.replace("'", "") for text in re.findall(r"--set ((?:[^ ']|'[^']*')+)", command)]
    scenario = scenarios.load(folder / "base.toml", found)
    assert scenario.traffic["cbr"].rate_bps == 310e3
    assert scenario.links["l1"].loss.p == 0.01
    assert scenario.components["srv"].cost.span_ns == 1_000_000
