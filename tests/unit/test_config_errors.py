"""Each kind of bad key or value has one message: file and line, key, what was found, what is allowed. Never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import CBR, ENDS, FLOW, LINK, RATE, SIZE, TIME, refusal

from tcpsbed import shipped
from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import load
from tcpsbed.scenarios.fields import WrongTable
from tcpsbed.scenarios.model.place import Board

FIVE = TIME.replace('"15 ms"', '"5 ms" or "5 s"')

CASES = {
    "unknown key": (
        FLOW + 'rte = "1 kHz"\n',
        "bad.toml:5: flows.kinematic.rte: unknown key (did you mean rate?); allowed: direction, rate, sample, source, "
        "picture, sound, sink, playout, codec, transport, overhead, start, stop, dscp, priority, authority, "
        "blocking_send, buffers, session, via, from, to, path",
    ),
    "unknown section": (
        'duraton = "5 s"\n' + FLOW,
        "bad.toml:1: duraton: unknown key (did you mean duration?); allowed: name, description, duration, seed, phases, "
        "warmup, base, calibration, sessions, nodes, components, flows, channels, hooks, topology, links, traffic, events, "
        "measure, real, hosts",
    ),
    "a number of more digits than Python writes": (
        f"seed = 0x{'f' * 4000}\n" + FLOW,
        f"bad.toml:1: seed: found {hex(16**4000 - 1)[:80]}…; allowed: a whole number below 9223372036854775808",
    ),
    "missing unit": (
        'duration = "5"\n' + FLOW,
        f'bad.toml:1: duration: found "5", a number without a unit; allowed: {FIVE}',
    ),
    "number for a quantity": (
        "duration = 5\n" + FLOW,
        f"bad.toml:1: duration: found 5, a number without a unit; allowed: {FIVE}",
    ),
    "wrong unit": (
        'duration = "5 kbit/s"\n' + FLOW,
        f'bad.toml:1: duration: found "5 kbit/s", which is a bit rate; allowed: {TIME}',
    ),
    "unknown unit": (
        LINK + 'rate = "1 Mbps"\n',
        f'bad.toml:8: links.l1.rate: found "1 Mbps", with the unknown unit "Mbps" (did you mean Mbit/s?); allowed: {RATE}',
    ),
    "negative rate": (
        CBR + 'rate = "-1 kbit/s"\n',
        f'bad.toml:10: traffic.cbr.rate: found "-1 kbit/s", which is negative; allowed: {RATE}',
    ),
    "rate of zero": (
        LINK + 'rate = "0 bit/s"\n',
        f'bad.toml:8: links.l1.rate: found "0 bit/s", which is zero; allowed: {RATE}',
    ),
    "part of a byte": (
        FLOW + 'sample = "0.5 B"\n',
        f'bad.toml:5: flows.kinematic.sample: found "0.5 B", which is not a whole number of bytes; allowed: {SIZE}',
    ),
    "probability above one": (
        LINK + 'loss = "150 %"\n',
        'bad.toml:8: links.l1.loss: found "150 %", which is above 100 %; allowed: a share with its percent sign, '
        'such as "0.5 %" or "50 %"',
    ),
    "wrong choice": (
        FLOW + 'direction = "foward"\n',
        'bad.toml:5: flows.kinematic.direction: found "foward" (did you mean forward?); allowed: "forward", "backward"',
    ),
    "wrong type": (
        '[real]\nrealtime = "yes"\n' + FLOW,
        'bad.toml:2: real.realtime: found "yes"; allowed: true or false',
    ),
    "negative seed": (
        "seed = -1\n" + FLOW,
        "bad.toml:1: seed: found -1; allowed: a whole number of 0 or more",
    ),
    "value for a table": (
        FLOW.replace('"a"', "3"),
        "bad.toml:2: components.tactile-operator: found 3; "
        'allowed: its node in quotes, such as "edge", or a table with some of the keys '
        "kind, node, session, robot, board, params, cost, delay",
    ),
    "missing key": (
        FLOW + '[flows.texture]\nrate = "1 kHz"\n',
        'bad.toml:5: flows.texture.direction is missing; allowed: "forward", "backward"',
    ),
    "component of no kind": (
        '[components]\nserver = { kind = "sv", node = "a" }\n[flows.kinematic]\n',
        'bad.toml:2: components.server.kind: found "sv" (did you mean srv?); allowed: '
        '"tactile-operator", "ms-embsys", "ms-embsys-app", '
        '"ms-com", "ms-ei", "srv", "ss-ei", "ss-com", "ss-embsys", "ss-embsys-app", "tactile-teleoperator", "emu", '
        '"test-pc", or code such as "./mine.py:Mine"',
    ),
    "component whose name says no kind": (
        '[components]\nsvr = "a"\n[flows.kinematic]\n',
        'bad.toml:2: components.svr: found "svr", which is not a built-in component (did you mean srv?); allowed: '
        'a built-in name and its node, such as srv = "a"; or a name of your own with kind and node, such as '
        'svr = { kind = "srv", node = "a" }; kinds: '
        '"tactile-operator", "ms-embsys", "ms-embsys-app", "ms-com", "ms-ei", "srv", "ss-ei", "ss-com", "ss-embsys", '
        '"ss-embsys-app", "tactile-teleoperator", "emu", "test-pc", or code such as "./mine.py:Mine"',
    ),
    "unfit name": (
        '[components]\n"my srv" = { kind = "srv", node = "a" }\n[flows.kinematic]\n',
        'bad.toml:2: components."my srv": found the name "my srv"; allowed: up to 100 letters, digits, "_" and "-", '
        'such as "edge-1"',
    ),
    "duplicate id": (
        LINK + "[links.l1]\n",
        "bad.toml:8: links.l1: found a second time (first on line 5); allowed: each table and each key once",
    ),
    "duplicate key": (
        FLOW + 'rate = "1 kHz"\nrate = "2 kHz"\n',
        "bad.toml:6: flows.kinematic.rate: found a second time (first on line 5); allowed: each table and each key once",
    ),
    "duplicate session": (
        'sessions = ["x", "x"]\n' + FLOW,
        'bad.toml:1: sessions: found "x" twice; allowed: each session once',
    ),
    "wrong TOML": (
        FLOW + "rate = 1 kHz\n",
        "bad.toml:5: found invalid TOML (Expected newline or end of document after a statement) "
        "at column 10 of: rate = 1 kHz; "
        'allowed: TOML, with text in quotes: key = "15 ms"',
    ),
    "flow without a way": (
        '[components]\nsrv = "a"\n[flows.kinematic]\n',
        "bad.toml:3: flows.kinematic: found 1 component on its path; allowed: two or more in [components], of the kinds "
        "tactile-operator, ms-embsys, ms-embsys-app, ms-com, srv, ss-ei, ss-com, ss-embsys, ss-embsys-app, "
        'tactile-teleoperator, or path = ["left", "right"] with their ids',
    ),
    "flow with two ways": (
        FLOW.replace("[flows", '[components.right]\nkind = "tactile-teleoperator"\nnode = "c"\n[flows'),
        "bad.toml:7: flows.kinematic: found 2 components for one place on its path (tactile-teleoperator, right); "
        'allowed: via = ["tactile-teleoperator"] or via = ["right"]',
    ),
    "component that is not there": (
        FLOW + 'via = "camera"\n',
        f'bad.toml:5: flows.kinematic.via: found "camera"; allowed: a component on the way: {ENDS}',
    ),
    "no flows": (
        '[flows]\n[components]\nsrv = "a"\n',
        "bad.toml:1: flows: found no flows; allowed: one flow or more, such as [flows.kinematic]",
    ),
    "span beyond all bounds": (
        'duration = "20000 h"\n' + FLOW,
        f'bad.toml:1: duration: found "20000 h", which is too large; allowed: {TIME}, at most 1000000 s',
    ),
    "event without a target": (
        FLOW + '[[events]]\nat = "5 s"\n',
        "bad.toml:5: events.0: found no target; allowed: one of link, reroute, flow, traffic, component, node, attack, "
        'such as link = "l1"',
    ),
    "clock of no node": (
        FLOW + '[[events]]\nat = "5 s"\nnode = "nowhere"\nstep = "1 s"\n',
        'bad.toml:7: events.0.node: found "nowhere"; allowed: a node: a, b',
    ),
    "clock step without a step": (
        FLOW + '[[events]]\nat = "5 s"\nnode = "a"\n',
        'bad.toml:5: events.0: found node without a change; allowed: step, such as step = "1 ms"',
    ),
    "values of a flow that does not pass": (
        '[components]\ntactile-operator = "a"\nms-com = "a"\nss-com = "b"\n[flows.kinematic]\n[flows.haptic]\n'
        'from = "ss-com"\nto = "ms-com"\n[hooks.predict]\nrun = "zoh"\nat = "tactile-operator"\nflow = "kinematic"\n'
        'other = "haptic"\n',
        'bad.toml:13: hooks.predict.other: found "haptic", which does not pass tactile-operator; allowed: a flow that '
        "passes tactile-operator",
    ),
    "event that changes nothing": (
        FLOW + '[[events]]\nat = "5 s"\nflow = "kinematic"\n',
        "bad.toml:5: events.0: found flow without a change; allowed: running, such as running = false",
    ),
    "echo point that is not there": (
        FLOW + '[measure]\necho = "srv.entry"\n',
        'bad.toml:6: measure.echo: found "srv.entry"; allowed: "all" or a point of kinematic: '
        "tactile-operator.entry, tactile-operator.exit, tactile-teleoperator.entry, tactile-teleoperator.exit",
    ),
    "flow in two channels": (
        FLOW + '[channels]\nc = { flows = "kinematic" }\nd = { flows = "kinematic" }\n',
        'bad.toml:7: channels.d.flows: found the flow "kinematic", which channel c has already; '
        "allowed: each flow in one channel, or in channels with different `between`",
    ),
    "rate beyond all ticks": (
        FLOW + 'rate = "900 MHz"\n',
        'bad.toml:5: flows.kinematic.rate: found "900 MHz", which is above 1 MHz; '
        'allowed: a frequency such as "1 kHz" (Hz, kHz, MHz, fps)',
    ),
    "rate below all ticks": (
        FLOW + 'rate = "1e-30 Hz"\n',
        'bad.toml:5: flows.kinematic.rate: found "1e-30 Hz", which is less than once in 11 days; '
        'allowed: a frequency such as "1 kHz" (Hz, kHz, MHz, fps)',
    ),
    "queues looked at too often": (
        FLOW + '[measure]\nqueues = "1 ns"\n',
        f'bad.toml:6: measure.queues: found "1 ns", which is below 1 us; allowed: {TIME}',
    ),
    "sample beyond all bounds": (
        FLOW + 'sample = "3000000000 B"\n',
        f'bad.toml:5: flows.kinematic.sample: found "3000000000 B", which is above 16 MB; allowed: {SIZE}',
    ),
    "channel without flows": (
        FLOW + "[channels.c]\nflows = []\n",
        "bad.toml:6: channels.c.flows: found an empty list; allowed: 1 or more in the list",
    ),
    "flow that stops before it starts": (
        FLOW + 'start = "3 s"\nstop = "2 s"\n',
        "bad.toml:6: flows.kinematic.stop: found 2 s, which is not after the start at 3 s; "
        "allowed: a time after 3 s, or an earlier start",
    ),
    "flow that starts after the end": (
        FLOW + 'start = "10 s"\n',
        "bad.toml:5: flows.kinematic.start: found 10 s, but the run ends at 10 s; "
        "allowed: a time before 10 s, or a longer duration",
    ),
    "echo commands after the end": (
        FLOW + '[measure]\necho = { start = "11 s" }\n',
        "bad.toml:6: measure.echo.start: found 11 s, but the run ends at 10 s; "
        "allowed: a time before 10 s, or a longer duration",
    ),
    "event after the end": (
        FLOW + '[[events]]\nat = "11 s"\nflow = "kinematic"\nrunning = false\n',
        "bad.toml:6: events.0.at: found 11 s, but the run ends at 10 s; "
        "allowed: a time before 10 s, or a longer duration",
    ),
    "a wrong key of a source that is named like another key": (
        FLOW + 'source = { recording = "builtin:hand", repeat = "x" }\n',
        'bad.toml:5: flows.kinematic.source.repeat: found "x"; allowed: "loop", "mirror", "hold"',
    ),
    "text in place of a table with a kind": (
        LINK + 'radio = "nr"\n',
        'bad.toml:8: links.l1.radio: found "nr"; allowed: a table such as { kind = "nr" }',
    ),
    "none of some numbers": (
        LINK + 'radio = { kind = "lte", resource_blocks = 7 }\n',
        "bad.toml:8: links.l1.radio.resource_blocks: found 7; allowed: 6, 15, 25, 50, 75, 100",
    ),
    "law without a mean": (
        FLOW.replace('"b"', '{ node = "b", delay = { kind = "pareto", scale = "1 ms", shape = inf } }'),
        "bad.toml:3: components.tactile-teleoperator.delay.shape: found inf; allowed: a finite number, such as 0.5",
    ),
    "quantiles out of order": (
        FLOW.replace('"b"', '{ node = "b", delay = { kind = "empirical", quantiles = ["2 ms", "1 ms"] } }'),
        "bad.toml:3: components.tactile-teleoperator.delay.quantiles: found quantiles out of order; "
        "allowed: spans from the shortest to the longest",
    ),
    "a table for the name of an echo point": (
        FLOW + "[measure]\necho = { points = [{}] }\n",
        'bad.toml:6: measure.echo.points.0: found a table; allowed: text in quotes, such as "srv.entry"',
    ),
    "warm-up of the whole run": (
        'warmup = "10 s"\n' + FLOW,
        "bad.toml:1: warmup: found 10 s, but the run ends at 10 s; allowed: a span shorter than the duration",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_has_one_message(tmp_path: Path, case: str) -> None:
    text, message = CASES[case]
    assert refusal(tmp_path, text) == f"{tmp_path}/{message}"


OVERRIDES = {
    'flows.kinematc.rate="2 kHz"': 'flows.kinematc.rate: found "kinematc" (did you mean kinematic?); '
    "allowed: kinematic, haptic",
    "flows.kinematic.rate=2 khz": 'flows.kinematic.rate: found "2 khz", with the unknown unit "khz" (did you mean kHz?); '
    'allowed: a frequency such as "1 kHz" (Hz, kHz, MHz, fps)',
    "duration": 'found no "=" after a key; allowed: KEY=VALUE on one line, such as --set \'duration="5 s"\'',
    "a b=3": 'found "a b", which is not a key; allowed: KEY=VALUE on one line, such as --set \'duration="5 s"\'',
}


@pytest.mark.parametrize("override", OVERRIDES)
def test_a_bad_override_has_one_message_that_names_it(tmp_path: Path, override: str) -> None:
    assert (
        refusal(tmp_path, FLOW + "[flows.haptic]\n", override) == f"--set {override}: {OVERRIDES[override]}"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "override",
    [
        ".".join(["a"] * 50_000) + "=1",
        "HUGE=1",
        "HUGE",
        "flows.HUGE.rate='1 Hz'",
        "flows.kinematic.HUGE=1",
        "flows.kinematic.rate=HUGE",
        "flows.kinematic.transport={ kind = 'HUGE' }",
        "components.HUGE='edge'",
        "measure.echo=['HUGE']",
    ],
)
def test_a_huge_override_is_named_by_its_beginning(tmp_path: Path, override: str) -> None:
    override = override.replace("HUGE", "h" * 50_000)
    message = refusal(tmp_path, FLOW, override)
    assert message.startswith(f"--set {override[:80]}…: ") and "; allowed: " in message
    assert len(message) < 700 and max(map(len, message.split())) <= 90


def test_a_number_of_more_digits_than_python_writes_is_refused(tmp_path):
    file = tmp_path / "long.toml"
    file.write_text(f'include = "{shipped.find("quickstart")}"\n[links.access]\ndscp = 0x{"f" * 4500}\n')
    with pytest.raises(ConfigError, match=r"dscp: found 0xffff.*…; allowed: "):
        load(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path / "none.toml")
    assert str(error.value) == (
        f"{tmp_path}/none.toml cannot be read (no such file); "
        "allowed: a scenario file in TOML, or a spreadsheet that ends in .xlsx"
    )


@pytest.mark.parametrize("value", [True, "٣", [1.0]])
def test_what_is_no_number_is_none_for_a_board_either(value):
    with pytest.raises(WrongTable):
        Board.model_validate({"safe": [0.5, value]})
