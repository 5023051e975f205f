"""Each kind of bad input has one message: file and line, key, what was found, what is allowed. Never a traceback."""

from __future__ import annotations

import copy
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpsbed.config import check, load
from tcpsbed.config.compile import builtins
from tcpsbed.config.load import build
from tcpsbed.config.origin import Origin
from tcpsbed.errors import ConfigError, TcpsbedError

TIME = 'a span of time such as "15 ms" (ns, us, ms, s, min, h)'
RATE = 'a rate such as "1.5 Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s)'
SIZE = 'a size such as "1500 B" (B, kB, MB, KiB, MiB)'
ENDS = "tactile-operator, tactile-teleoperator"
FLOW = '[components]\ntactile-operator = "a"\ntactile-teleoperator = "b"\n[flows.kinematic]\n'  # lines 1 to 4
LINK = FLOW + '[links.l1]\nfrom = "a"\nto = "b"\n'  # lines 5 to 7
CBR = LINK + '[traffic.cbr]\non = "l1"\n'  # lines 8 and 9
HOOK = FLOW + '[hooks.predict]\nat = "tactile-operator"\n'  # lines 5 and 6

CASES = {
    "unknown key": (
        FLOW + 'rte = "1 kHz"\n',
        "bad.toml:5: flows.kinematic.rte: unknown key; allowed: direction, rate, sample, source, picture, sound, sink, "
        "playout, codec, transport, overhead, start, stop, dscp, priority, authority, blocking_send, buffers, session, "
        "via, from, to, path (did you mean rate?)",
    ),
    "unknown section": (
        'duraton = "5 s"\n' + FLOW,
        "bad.toml:1: duraton: unknown key; allowed: name, description, duration, seed, warmup, base, calibration, "
        "sessions, nodes, components, flows, channels, hooks, topology, links, traffic, events, measure, real, hosts "
        "(did you mean duration?)",
    ),
    "missing unit": (
        'duration = "5"\n' + FLOW,
        f'bad.toml:1: duration: found "5", a number without a unit; allowed: {TIME}',
    ),
    "number for a quantity": (
        "duration = 5\n" + FLOW,
        f"bad.toml:1: duration: found 5, a number without a unit; allowed: {TIME}",
    ),
    "wrong unit": (
        'duration = "5 kbit/s"\n' + FLOW,
        f'bad.toml:1: duration: found "5 kbit/s", which is a rate; allowed: {TIME}',
    ),
    "unknown unit": (
        LINK + 'rate = "1 Mbps"\n',
        f'bad.toml:8: links.l1.rate: found "1 Mbps", with the unknown unit "Mbps"; allowed: {RATE}',
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
        f'bad.toml:5: flows.kinematic.sample: found "0.5 B", which is no whole number of bytes; allowed: {SIZE}',
    ),
    "probability above one": (
        LINK + "loss = 1.5\n",
        'bad.toml:8: links.l1.loss: found 1.5, which is not between 0 and 1; allowed: a share such as "5 %", '
        "or a number from 0 to 1",
    ),
    "wrong choice": (
        FLOW + 'direction = "foward"\n',
        'bad.toml:5: flows.kinematic.direction: found "foward"; allowed: "forward", "backward" (did you mean "forward"?)',
    ),
    "wrong type": (
        '[real]\nrealtime = "yes"\n' + FLOW,
        'bad.toml:2: real.realtime: found "yes"; allowed: true or false',
    ),
    "negative seed": ("seed = -1\n" + FLOW, "bad.toml:1: seed: found -1; allowed: a number at least 0"),
    "value for a table": (
        FLOW.replace('"a"', "3"),
        "bad.toml:2: components.tactile-operator: found 3; "
        "allowed: a table with the keys kind, node, session, robot, board, cost, delay",
    ),
    "missing key": (
        FLOW + '[flows.texture]\nrate = "1 kHz"\n',
        'bad.toml:5: flows.texture.direction: found nothing; allowed: "forward", "backward"',
    ),
    "component of no kind": (
        '[components]\nserver = { kind = "sv", node = "a" }\n[flows.kinematic]\n',
        'bad.toml:2: components.server.kind: found "sv"; allowed: "tactile-operator", "ms-embsys", "ms-embsys-app", '
        '"ms-com", "ms-ei", "srv", "ss-ei", "ss-com", "ss-embsys", "ss-embsys-app", "tactile-teleoperator", "emu", '
        '"test-pc" '
        '(did you mean "srv"?)',
    ),
    "unfit name": (
        '[components]\n"my srv" = { kind = "srv", node = "a" }\n[flows.kinematic]\n',
        'bad.toml:2: components.my srv: found the name "my srv"; allowed: letters, digits, "_" and "-"',
    ),
    "duplicate id": (
        LINK + "[links.l1]\n",
        "bad.toml:8: links.l1: found a duplicate id; allowed: each name once",
    ),
    "duplicate key": (
        FLOW + 'rate = "1 kHz"\nrate = "2 kHz"\n',
        "bad.toml:6: flows.kinematic.rate: found a duplicate id; allowed: each name once",
    ),
    "duplicate session": (
        'sessions = ["x", "x"]\n' + FLOW,
        'bad.toml:1: sessions: found the duplicate id "x"; allowed: each name once',
    ),
    "router named like a node": (
        FLOW + '[topology]\nrouters = ["a"]\n',
        'bad.toml:6: topology.routers: found the duplicate id "a"; allowed: a name that no other node has',
    ),
    "wrong TOML": (
        FLOW + "rate = 1 kHz\n",
        "bad.toml:5: found wrong TOML (Expected newline or end of document after a statement); "
        'allowed: TOML, with text in quotes: key = "15 ms"',
    ),
    "flow without a way": (
        '[components]\nsrv = "a"\n[flows.kinematic]\n',
        "bad.toml:3: flows.kinematic: found 1 component on its way; allowed: two or more of tactile-operator, ms-embsys, "
        "ms-embsys-app, ms-com, srv, ss-ei, ss-com, ss-embsys, ss-embsys-app, tactile-teleoperator, or a path",
    ),
    "flow with two ways": (
        FLOW.replace("[flows", '[components.right]\nkind = "tactile-teleoperator"\nnode = "c"\n[flows'),
        "bad.toml:7: flows.kinematic: found 2 ways (tactile-teleoperator, right); "
        'allowed: via = ["tactile-teleoperator"] or another choice',
    ),
    "component that is not there": (
        FLOW + 'via = "camera"\n',
        f'bad.toml:5: flows.kinematic.via: found "camera"; allowed: a component on the way: {ENDS}',
    ),
    "no flows": (
        '[flows]\n[components]\nsrv = "a"\n',
        "bad.toml:1: flows: found no flows; allowed: one flow or more, such as [flows.kinematic]",
    ),
    "route that does not exist": (
        LINK.replace('to = "b"', 'to = "n1"') + '[topology]\nrouters = ["n1"]\n',
        'bad.toml:4: flows.kinematic: found no route from "a" to "b"; allowed: links that join them (a reaches n1)',
    ),
    "way back that does not exist": (
        LINK + 'duplex = "simplex"\n[flows.haptic]\n',
        'bad.toml:9: flows.haptic: found no route from "b" to "a"; allowed: links that join them (b reaches nothing)',
    ),
    "traffic without a route": (
        LINK + '[topology]\nrouters = ["n1"]\n[traffic.cbr]\non = "a->n1"\nrate = "1 kbit/s"\n',
        'bad.toml:11: traffic.cbr.on: found no route from "a" to "n1"; allowed: links that join them (a reaches b)',
    ),
    "link to nowhere": (
        LINK.replace('to = "b"', 'to = "n1"'),
        'bad.toml:7: links.l1.to: found "n1"; allowed: a node or a router (topology.routers): a, b',
    ),
    "link without an end": (
        LINK.replace('to = "b"\n', ""),
        "bad.toml:5: links.l1.to: found nothing; allowed: a node or a router",
    ),
    "traffic on no link": (
        CBR.replace('"l1"', '"l2"') + 'rate = "1 kbit/s"\n',
        'bad.toml:9: traffic.cbr.on: found "l2"; allowed: "a->b", "all-to-all" or a link: l1, l1.forward, l1.backward',
    ),
    "traffic without a network": (
        FLOW + '[traffic.cbr]\non = "l1"\nrate = "1 kbit/s"\n',
        "bad.toml:5: traffic.cbr: found traffic, but there are no links; allowed: a scenario with links or a graph",
    ),
    "traffic of no kind": (
        LINK + '[traffic.x]\nkind = "cb"\non = "l1"\nrate = "1 kbit/s"\n',
        'bad.toml:8: traffic.x: found the kind "cb"; allowed: "cbr", "poisson", "vbr", "replay", '
        '"video", "web", "transfers", "bulk" (did you mean "cbr"?)',
    ),
    "queue in seconds": (
        LINK + 'queue = "15 ms"\n',
        'bad.toml:8: links.l1.queue: found "15 ms", which is a span of time; allowed: "15000 B", "20 packets" or a table',
    ),
    "setting of another discipline": (
        LINK + 'queue = { limit = "15000 B", target = "5 ms" }\n',
        "bad.toml:8: links.l1.queue.target: unknown key of a drop-tail queue; allowed: limit, discipline",
    ),
    "priority without classes": (
        LINK + 'queue = { discipline = "priority" }\n',
        "bad.toml:8: links.l1.queue.classes: found 0 classes; "
        'allowed: 2 to 64 classes such as [["EF"], []]; the last one takes the rest',
    ),
    "unknown code point": (
        LINK + 'queue = { discipline = "priority", classes = [["EG"], []] }\n',
        'bad.toml:8: links.l1.queue.classes.0.0: found "EG"; '
        'allowed: a code point from 0 to 63 or a name such as "EF", "CS5", "AF41"',
    ),
    "thresholds of RED the wrong way round": (
        LINK + 'queue = { discipline = "red", min = "9 kB", max = "5 kB" }\n',
        "bad.toml:8: links.l1.queue.min: found a minimum that is not below the maximum; allowed: min below max",
    ),
    "new rate of a traced link": (
        LINK + 'trace = "plain.csv"\n[[events]]\nat = "1 s"\nlink = "l1"\nrate = "1 kbit/s"\n',
        "bad.toml:12: events.0.rate: found a new rate of a link that follows a trace; allowed: delay, loss, up",
    ),
    "span beyond all bounds": (
        'duration = "20000 h"\n' + FLOW,
        f'bad.toml:1: duration: found "20000 h", which is too large; allowed: {TIME}',
    ),
    "unknown graph": (
        FLOW + '[topology]\ngraph = "usnet8"\n',
        'bad.toml:6: topology.graph: found "usnet8", but there is no such file; '
        "allowed: usnet9, usnet24 (did you mean usnet9?) or a GraphML file, looked for at {folder}/usnet8",
    ),
    "built-in hook that is not there": (
        HOOK + 'run = "zho"\n',
        'bad.toml:7: hooks.predict.run: found "zho"; allowed: a built-in hook: arm3, zoh (did you mean zoh?); '
        'or "./lib.so:function" or "module:name"',
    ),
    "library that is not there": (
        HOOK + 'run = "./no.so:f"\n',
        'bad.toml:7: hooks.predict.run: found "./no.so", but there is no such file; '
        "allowed: a shared library, looked for at {folder}/no.so",
    ),
    "library that is none": (
        HOOK + 'run = "./text.so:f"\n',
        'bad.toml:7: hooks.predict.run: found "./text.so", which cannot be loaded ({folder}/text.so: file too short); '
        "allowed: a shared library",
    ),
    "module that is not there": (
        HOOK + 'run = "nomod:Zoh"\n',
        'bad.toml:7: hooks.predict.run: found "nomod", which is no module; '
        "allowed: a module that can be imported, or a file nomod.py in {folder}",
    ),
    "name that a module lacks": (
        HOOK + 'run = "mod:Zho"\n',
        'bad.toml:7: hooks.predict.run: found "Zho"; allowed: a name in mod: Zoh, Other (did you mean Zoh?)',
    ),
    "module that fails": (
        HOOK + 'run = "boom:Zoh"\n',
        'bad.toml:7: hooks.predict.run: found "boom", which fails (ValueError: no); allowed: a module that can be imported',
    ),
    "hook that no flow passes": (
        FLOW + '[hooks]\nkinematics = "arm3"\n',
        "bad.toml:6: hooks.kinematics: found a kinematics hook that no flow passes at srv; "
        f"allowed: at = one of {ENDS}",
    ),
    "unknown robot": (
        FLOW.replace('"b"', '{ node = "b", robot = "arn" }'),
        'bad.toml:3: components.tactile-teleoperator.robot: found "arn"; '
        'allowed: a built-in robot: arm, wall_mass (did you mean arm?); or "./lib.so:function" or "module:name"',
    ),
    "unknown transport": (
        FLOW + 'transport = "dpm"\n',
        'bad.toml:5: flows.kinematic.transport: found "dpm"; allowed: a built-in transport: udp; or "module:Class"',
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
    "capture that is not there": (
        LINK + '[traffic.x]\non = "l1"\nfile = "no.pcap"\n',
        'bad.toml:10: traffic.x.file: found "no.pcap", but there is no such file; '
        "allowed: a file, looked for at {folder}/no.pcap",
    ),
    "capture that is none": (
        LINK + '[traffic.x]\non = "l1"\nfile = "plain.csv"\n',
        "bad.toml:10: traffic.x.file: found one column in plain.csv, line 1; allowed: time in s, bytes",
    ),
    "link trace that is none": (
        LINK + 'trace = "text.so"\n',
        "bad.toml:8: links.l1.trace: found 'text' in text.so, line 1; allowed: finite numbers",
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
    "event without a target": (
        FLOW + '[[events]]\nat = "5 s"\n',
        "bad.toml:5: events.0: found no target; allowed: one of link, reroute, flow, traffic, component, node",
    ),
    "clock of no node": (
        FLOW + '[[events]]\nat = "5 s"\nnode = "nowhere"\nstep = "1 s"\n',
        'bad.toml:5: events.0.node: found "nowhere"; allowed: a node: a, b',
    ),
    "clock step without a step": (
        FLOW + '[[events]]\nat = "5 s"\nnode = "a"\n',
        "bad.toml:5: events.0: found an event of a node that changes nothing; allowed: step",
    ),
    "values of a flow that does not pass": (
        '[components]\ntactile-operator = "a"\nms-com = "a"\nss-com = "b"\n[flows.kinematic]\n[flows.haptic]\n'
        'from = "ss-com"\nto = "ms-com"\n[hooks.predict]\nrun = "zoh"\nat = "tactile-operator"\nflow = "kinematic"\n'
        'other = "haptic"\n',
        'bad.toml:13: hooks.predict.other: found "haptic", which does not pass tactile-operator; allowed: flows that do',
    ),
    "event that changes nothing": (
        FLOW + '[[events]]\nat = "5 s"\nflow = "kinematic"\n',
        "bad.toml:5: events.0: found an event of a flow that changes nothing; allowed: running",
    ),
    "echo point that is not there": (
        FLOW + '[measure]\necho = "srv.entry"\n',
        'bad.toml:6: measure.echo: found "srv.entry"; allowed: "all" or a point of kinematic: '
        "tactile-operator.entry, tactile-operator.exit, tactile-teleoperator.entry, tactile-teleoperator.exit",
    ),
    "flow in two channels": (
        FLOW + '[channels]\nc = { flows = "kinematic" }\nd = { flows = "kinematic" }\n',
        'bad.toml:7: channels.d.flows: found the flow "kinematic", which channel c has already; '
        "allowed: a flow in one channel between two nodes",
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
    "robot that steps too often": (
        FLOW.replace('"b"', '{ node = "b", robot = { run = "arm", period = "1 ns" } }'),
        'bad.toml:3: components.tactile-teleoperator.robot.period: found "1 ns", which is below 1 us; '
        f"allowed: {TIME}",
    ),
    "queues looked at too often": (
        FLOW + '[measure]\nqueues = "1 ns"\n',
        f'bad.toml:6: measure.queues: found "1 ns", which is below 1 us; allowed: {TIME}',
    ),
    "sample beyond all bounds": (
        FLOW + 'sample = "3000000000 B"\n',
        f'bad.toml:5: flows.kinematic.sample: found "3000000000 B", which is above 16 MB; allowed: {SIZE}',
    ),
    "packet beyond all bounds": (
        CBR + 'rate = "1 kbit/s"\npacket = "70 kB"\n',
        f'bad.toml:11: traffic.cbr.packet: found "70 kB", which is above 65535 B; allowed: {SIZE}',
    ),
    "traffic on nothing": (
        LINK + '[traffic.cbr]\non = []\nrate = "1 kbit/s"\n',
        "bad.toml:9: traffic.cbr.on: found an empty list; allowed: at least 1 of them",
    ),
    "traffic on the second of two parallel links": (
        LINK + '[links.l2]\nfrom = "a"\nto = "b"\n[traffic.cbr]\non = "l2"\nrate = "1 kbit/s"\n',
        'bad.toml:12: traffic.cbr.on: found "l2.forward", and l1.forward joins the same two; '
        'allowed: "a->b", which takes the link that the route takes',
    ),
    "traffic from a place to itself": (
        LINK + '[traffic.cbr]\non = "a->a"\nrate = "1 kbit/s"\n',
        'bad.toml:9: traffic.cbr.on: found "a->a"; allowed: a pair of two places',
    ),
    "traffic among one": (
        LINK + '[traffic.cbr]\non = "all-to-all"\namong = ["a"]\nrate = "1 kbit/s"\n',
        "bad.toml:10: traffic.cbr.among: found 1 place; allowed: two or more, each once",
    ),
    "channel without flows": (
        FLOW + "[channels.c]\nflows = []\n",
        "bad.toml:6: channels.c.flows: found an empty list; allowed: at least 1 of them",
    ),
    "flow that stops before it starts": (
        FLOW + 'start = "3 s"\nstop = "2 s"\n',
        "bad.toml:6: flows.kinematic.stop: found 2 s, which is not after the start at 3 s; "
        "allowed: a moment after start",
    ),
    "flow that starts after the end": (
        FLOW + 'start = "10 s"\n',
        "bad.toml:5: flows.kinematic.start: found 10 s, and the run is over at 10 s; "
        "allowed: a moment before the duration is over",
    ),
    "traffic that stops before it starts": (
        CBR + 'rate = "1 kbit/s"\nstart = "3 s"\nstop = "3 s"\n',
        "bad.toml:12: traffic.cbr.stop: found 3 s, which is not after the start at 3 s; "
        "allowed: a moment after start",
    ),
    "echo commands after the end": (
        FLOW + '[measure]\necho = { start = "11 s" }\n',
        "bad.toml:6: measure.echo.start: found 11 s, and the run is over at 10 s; "
        "allowed: a moment before the duration is over",
    ),
    "event after the end": (
        FLOW + '[[events]]\nat = "11 s"\nflow = "kinematic"\nrunning = false\n',
        "bad.toml:6: events.0.at: found 11 s, and the run is over at 10 s; "
        "allowed: a moment before the duration is over",
    ),
    "base that is not there": (
        'base = "nowhere"\n' + FLOW,
        'bad.toml:1: base: found "nowhere", but there is no such folder; '
        "allowed: a folder, looked for at {folder}/nowhere",
    ),
    "law without a mean": (
        FLOW.replace('"b"', '{ node = "b", delay = { kind = "pareto", scale = "1 ms", shape = inf } }'),
        "bad.toml:3: components.tactile-teleoperator.delay.shape: found inf; allowed: a finite number",
    ),
    "quantiles out of order": (
        FLOW.replace('"b"', '{ node = "b", delay = { kind = "empirical", quantiles = ["2 ms", "1 ms"] } }'),
        "bad.toml:3: components.tactile-teleoperator.delay.quantiles: found quantiles out of order; "
        "allowed: spans that do not fall",
    ),
    "calibration that falls": (
        'calibration = "falling.json"\n' + FLOW,
        "bad.toml:1: calibration: found quantiles of srv.work in falling.json that are no rising spans of time; "
        "allowed: a file written by tcpsbed calibrate",
    ),
    "calibration below zero": (
        'calibration = "negative.json"\n' + FLOW,
        "bad.toml:1: calibration: found quantiles of srv.work in negative.json that are no rising spans of time; "
        "allowed: a file written by tcpsbed calibrate",
    ),
    "edge to itself": (
        FLOW + '[topology]\ngraph = "loop.graphml"\n',
        'bad.toml:6: topology.graph: found an edge from "A" to itself in loop.graphml; allowed: edges between two nodes',
    ),
    "two edges between the same nodes": (
        FLOW + '[topology]\ngraph = "twice.graphml"\n',
        'bad.toml:6: topology.graph: found a second edge between "B" and "A" in twice.graphml; '
        "allowed: one edge between two nodes",
    ),
    "parameter that is a date": (
        HOOK + 'run = "zoh"\nparams = { since = 2020-01-01 }\n',
        "bad.toml:8: hooks.predict.params: found 2020-01-01 for since; allowed: text, true or false, a finite number, "
        "a quantity with its unit, a list or a table",
    ),
    "parameter that is no number": (
        FLOW + 'transport = { kind = "udp", mtu = nan }\n',
        "bad.toml:5: flows.kinematic.transport: found nan for mtu; allowed: text, true or false, a finite number, "
        "a quantity with its unit, a list or a table",
    ),
    "rate of a recording that has a time": (
        FLOW + 'source = { recording = "timed.csv", rate = "1 kHz" }\n',
        "bad.toml:5: flows.kinematic.source: found rate, and a column of time (t) in timed.csv; allowed: one of the two",
    ),
    "warm-up of the whole run": (
        'warmup = "10 s"\n' + FLOW,
        "bad.toml:1: warmup: found a warm-up that is not shorter than the run; allowed: a span below the duration",
    ),
    "include that is not there": (
        'include = "no.toml"\n' + FLOW,
        'bad.toml:1: include: found "no.toml", which is no file; allowed: a file, looked for at {folder}/no.toml',
    ),
    "include of itself": (
        'include = "bad.toml"\n' + FLOW,
        'bad.toml:1: include: found "bad.toml", which includes this file again; '
        "allowed: files that do not include each other",
    ),
}


@pytest.fixture(autouse=True)
def _builtins(monkeypatch):
    known = {"hooks": ["zoh", "arm3"], "robots": ["arm", "wall_mass"], "transports": ["udp"]}
    monkeypatch.setattr(builtins, "known", lambda: known)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.so").write_text("text")
    (tmp_path / "mod.py").write_text("class Zoh: pass\nOther = Zoh\n")
    (tmp_path / "boom.py").write_text("raise ValueError('no')\n")
    (tmp_path / "plain.csv").write_text("1\n2\n")
    (tmp_path / "timed.csv").write_text("t,x\n0,1\n1,2\n")
    edges = {"loop": ("A", "A"), "twice": ("B", "A")}
    for name, (a, b) in edges.items():
        nodes = '<graphml><graph><node id="A"/><node id="B"/><edge source="A" target="B"/>'
        (tmp_path / f"{name}.graphml").write_text(
            f'{nodes}<edge source="{a}" target="{b}"/></graph></graphml>'
        )
    for name, quantiles in {"falling": [5, 3], "negative": [-1, 3]}.items():
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"stages": {"srv.work": {"quantiles_ns": quantiles}}})
        )
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_bad_input_has_one_message(folder, case):
    text, message = CASES[case]
    path = folder / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        check(load(path))
    assert str(error.value) == f"{folder}/" + message.replace("{folder}", str(folder))


OVERRIDES = {
    'flows.kinematc.rate="2 kHz"': 'flows.kinematc.rate: found "kinematc"; '
    "allowed: kinematic, haptic (did you mean kinematic?)",
    "flows.kinematic.rate=2 khz": 'flows.kinematic.rate: found "2 khz", with the unknown unit "khz"; '
    'allowed: a frequency such as "1 kHz" (Hz, kHz, MHz, fps)',
    "duration": "found no KEY=VALUE in one line of text; allowed: KEY=VALUE, such as 'traffic.cbr.rate=\"310 kbit/s\"'",
    "a b=3": 'found "a b", which is no key; allowed: KEY=VALUE, such as \'traffic.cbr.rate="310 kbit/s"\'',
}


@pytest.mark.parametrize("override", OVERRIDES)
def test_a_bad_override_has_one_message_that_names_it(folder, override):
    path = folder / "good.toml"
    path.write_text(FLOW + "[flows.haptic]\n", encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        check(load(path, [override]))
    assert str(error.value) == f"--set {override}: {OVERRIDES[override]}"


def test_two_files_that_include_each_other_are_refused(folder):
    (folder / "a.toml").write_text('include = "b.toml"\n')
    (folder / "b.toml").write_text('include = "a.toml"\n')
    with pytest.raises(
        ConfigError, match=r"b\.toml:1: include: found \"a\.toml\", which includes this file again"
    ):
        load(folder / "a.toml")


def test_a_file_that_is_not_there_is_named(folder):
    with pytest.raises(ConfigError) as error:
        load(folder / "none.toml")
    assert str(error.value) == (
        f"{folder}/none.toml: cannot be read (No such file or directory); allowed: a scenario file in TOML"
    )


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
    try:
        check(build(Origin(Path("damaged.toml"), tree)))
    except TcpsbedError as error:
        assert "; allowed: " in str(error)
