"""What a scenario names and cannot have (code, recordings, other files) has one message, which says where it was sought."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import ENDS, FLOW, HOOK, TIME, folder_of_files, refusal

from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import load

CASES = {
    "built-in hook that is not there": (
        HOOK + 'run = "zho"\n',
        'bad.toml:7: hooks.predict.run: found "zho" (did you mean zoh?); allowed: a built-in hook: arm3, zoh; '
        'or code such as "./mine.py:Mine" or "./lib.so:function"',
    ),
    "library that is not there": (
        HOOK + 'run = "./no.so:f"\n',
        'bad.toml:7: hooks.predict.run: found "./no.so", but there is no such file; '
        "allowed: a file, looked for at {folder}/no.so",
    ),
    "library that is none": (
        HOOK + 'run = "./text.so:f"\n',
        'bad.toml:7: hooks.predict.run: found "./text.so", which cannot be loaded ({folder}/text.so: file too short); '
        "allowed: a shared library",
    ),
    "module that is not there": (
        HOOK + 'run = "nomod:Zoh"\n',
        'bad.toml:7: hooks.predict.run: found "nomod", which is not a module; '
        "allowed: a module that can be imported, or a file nomod.py in {folder}",
    ),
    "name that a module lacks": (
        HOOK + 'run = "mod:Zho"\n',
        'bad.toml:7: hooks.predict.run: found "Zho" (did you mean Zoh?); allowed: a name in mod: Zoh, Other',
    ),
    "module that fails": (
        HOOK + 'run = "boom:Zoh"\n',
        'bad.toml:7: hooks.predict.run: found "boom", which fails (ValueError: no, at {folder}/boom.py:1 in <module>); '
        "allowed: a module that can be imported",
    ),
    "hook that no flow passes": (
        FLOW + '[hooks]\nkinematics = "arm3"\n',
        "bad.toml:6: hooks.kinematics: found a kinematics hook that no flow passes at srv; "
        f"allowed: at = one of {ENDS}",
    ),
    "unknown robot": (
        FLOW.replace('"b"', '{ node = "b", robot = "arn" }'),
        'bad.toml:3: components.tactile-teleoperator.robot: found "arn" (did you mean arm?); '
        'allowed: a built-in robot: arm, wall_mass; or code such as "./mine.py:Mine" or "./lib.so:function"',
    ),
    "unknown transport": (
        FLOW + 'transport = "dpm"\n',
        'bad.toml:5: flows.kinematic.transport: found "dpm"; allowed: a built-in transport: udp; '
        'or code such as "./mine.py:Mine"',
    ),
    "robot that is not there": (
        FLOW + 'source = "robot"\n',
        'bad.toml:5: flows.kinematic.source: found "robot", but tactile-operator has none; '
        "allowed: a flow from a tactile-teleoperator that has a robot",
    ),
    "recording that is not there": (
        FLOW + 'source = { recording = "no.csv" }\n',
        'bad.toml:5: flows.kinematic.source.recording: found "no.csv", but there is no such file; '
        "allowed: a file, looked for at {folder}/no.csv",
    ),
    "trace that is no trace": (
        FLOW
        + '[hooks.x]\nkind = "work"\nat = "tactile-operator"\ncost = { trace = "text.so", unit = "ms" }\n',
        "bad.toml:8: hooks.x.cost: found no rows in text.so; allowed: a csv file of numbers",
    ),
    "trace without a unit": (
        FLOW + '[hooks.x]\nkind = "work"\nat = "tactile-operator"\ncost = { trace = "plain.csv" }\n',
        "bad.toml:8: hooks.x.cost.unit: found no unit for plain.csv; "
        "allowed: ns, us, ms, s, or a column named like delay_ms",
    ),
    "robot that steps too often": (
        FLOW.replace('"b"', '{ node = "b", robot = { run = "arm", period = "1 ns" } }'),
        'bad.toml:3: components.tactile-teleoperator.robot.period: found "1 ns", which is below 1 us; '
        f"allowed: {TIME}",
    ),
    "base that is not there": (
        'base = "nowhere"\n' + FLOW,
        'bad.toml:1: base: found "nowhere", but there is no such folder; '
        "allowed: a folder, looked for at {folder}/nowhere",
    ),
    "base of the package that is not there": (
        'base = "shipped:.."\n' + FLOW,
        'bad.toml:1: base: found "shipped:.."; allowed: shipped:scenarios, shipped:examples, shipped:examples/hooks',
    ),
    "calibration that falls": (
        'calibration = "falling.json"\n' + FLOW,
        "bad.toml:1: calibration: found negative or falling quantiles of srv.work in falling.json; "
        "allowed: a file written by tcpsbed calibrate",
    ),
    "calibration below zero": (
        'calibration = "negative.json"\n' + FLOW,
        "bad.toml:1: calibration: found negative or falling quantiles of srv.work in negative.json; "
        "allowed: a file written by tcpsbed calibrate",
    ),
    "parameter that is a date": (
        HOOK + 'run = "zoh"\nparams = { since = 2020-01-01 }\n',
        "bad.toml:8: hooks.predict.params.since: found 2020-01-01; allowed: text, true or false, a finite number, "
        "a quantity with its unit, a list or a table",
    ),
    "parameter that is no number": (
        FLOW + 'transport = { kind = "udp", mtu = nan }\n',
        "bad.toml:5: flows.kinematic.transport.mtu: found nan; allowed: text, true or false, a finite number, "
        "a quantity with its unit, a list or a table",
    ),
    "rate of a recording that has a time": (
        FLOW + 'source = { recording = "timed.csv", rate = "1 kHz" }\n',
        "bad.toml:5: flows.kinematic.source: found rate beside the column of time t in timed.csv; "
        "allowed: no rate, or a file without a column of time",
    ),
    "include that is not there": (
        'include = "no.toml"\n' + FLOW,
        'bad.toml:1: include: found "no.toml", which is not a file; allowed: a file, looked for at {folder}/no.toml',
    ),
    "include of itself": (
        'include = "bad.toml"\n' + FLOW,
        'bad.toml:1: include: found "bad.toml", which includes this file again; '
        "allowed: files that do not include each other",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_had_has_one_message(tmp_path: Path, case: str) -> None:
    text, message = CASES[case]
    assert refusal(folder_of_files(tmp_path), text) == f"{tmp_path}/" + message.replace(
        "{folder}", str(tmp_path)
    )


def test_two_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('include = "b.toml"\n')
    (tmp_path / "b.toml").write_text('include = "a.toml"\n')
    with pytest.raises(
        ConfigError, match=r"b\.toml:1: include: found \"a\.toml\", which includes this file again"
    ):
        load(tmp_path / "a.toml")
