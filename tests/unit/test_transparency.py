"""Bilateral schemes measured: felt against true, Z-width, rest over delay; and the command that shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tcpsbed.cli.app import app
from tcpsbed.errors import ConfigError
from tcpsbed.lab.control import transparency
from tcpsbed.lab.control.transparency import FREQUENCIES_HZ, Setting, there

ONE_HZ = FREQUENCIES_HZ.index(1.0)


# [model: position-force] [model: wall tests]
def test_without_delay_the_wall_is_felt_as_it_is_and_free_space_is_free() -> None:
    """Position forward feels the coupling and the wall in series, half of it; waves in free space their own impedance."""
    [pd, wave] = transparency.measure([Setting("pd", 0), Setting("wave", 0)])
    assert pd.stable and pd.wall[ONE_HZ] == pytest.approx(there(1.0) / 2, rel=0.1)
    assert pd.free[ONE_HZ] < 0.5 and pd.width[ONE_HZ] == pytest.approx(pd.wall[ONE_HZ], rel=0.02)
    assert wave.stable and wave.wall[ONE_HZ] > 5 * wave.free[ONE_HZ]


# [Niemeyer 1991] [Ryu 2004] [Xu 2014]
def test_delay_costs_z_width_and_takes_the_rest_from_what_is_not_passive() -> None:
    found = transparency.measure(Setting(scheme, rtt) for scheme in ("pd", "wave", "mmt") for rtt in (0, 100))
    pd, wave, mmt = found[:2], found[2:4], found[4:]
    assert pd[0].stable and not pd[1].stable and pd[1].wall == () and pd[1].least_mj < -100
    assert all(one.stable for one in (*wave, *mmt)) and all(one.least_mj > -1 for one in wave)
    assert wave[1].width[ONE_HZ] < wave[0].width[ONE_HZ]
    assert mmt[1].width[ONE_HZ] == pytest.approx(mmt[0].width[ONE_HZ], rel=0.2), "models do not mind delay"


# [Hinterseer 2008: deadband]
def test_a_deadband_saves_messages() -> None:
    [all_, some] = transparency.measure([Setting("tdpa", 50), Setting("tdpa", 50, deadband=0.1)])
    assert all_.messages == 1 and some.messages < 0.6 and some.least_mj > -1


def test_the_command_prints_and_draws(tmp_path: Path) -> None:
    file = tmp_path / "z.svg"
    arguments = ["bilateral", "--schemes", "pd,wave", "--rtt", "0 ms,100 ms", "--figure", str(file)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0 and file.stat().st_size > 5000, done.output
    assert "Z-width" in done.output and "NO" in done.output
    more = CliRunner().invoke(app, ["bilateral", "--schemes", "wave", "--rtt", "0 ms", "--json"])
    told = json.loads(more.output)
    assert len(told["measured"][0]["width"]) == len(told["frequencies_hz"])


def test_what_makes_no_sense_is_refused() -> None:
    for setting, key, found, allowed in (
        (Setting("magic", 0), "--schemes", 'found "magic"', "mmt, pd, position, tdpa, wave"),
        (Setting("pd", 0, loss=1.0), "loss", "found 1", "a share from 0 to below 1, such as 0.1"),
    ):
        with pytest.raises(ConfigError) as refused:
            transparency.measure([setting])
        parts = refused.value.key, refused.value.found, refused.value.allowed
        assert parts == (key, found, allowed)
    with pytest.raises(ConfigError, match="found 1001 ms; allowed: 0 to 1000 ms"):
        transparency.measure([Setting("pd", 1001)])
    for arguments, said in (
        (["--schemes", "magic"], "allowed: mmt, pd"),
        (["--loss", "100%"], "below 100 %"),
        (["--rtt", "soon"], "--rtt"),
        (["--rtt", "1.4 ms"], "whole milliseconds"),
        (["--rtt", "1000000 s"], 'at most "1 s"'),
        (["--bursts", "inf", "--loss", "10%"], "allowed: a number of 1000000 or less"),
        (["--seed", "99999999999999999999"], "18446744073709551615"),
        (["--schemes", ","], "no scheme"),
    ):
        done = CliRunner().invoke(app, ["bilateral", *arguments])
        assert done.exit_code == 2 and said in done.output, done.output
