"""The doctor: things are tried, what does not work comes with a line to paste, and every run keeps an answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tcpsbed
from tcpsbed import doctor
from tcpsbed.doctor import commands, examination, hardware, kernel, timing
from tcpsbed.doctor.finding import Finding, attempt, ran
from tcpsbed.worlds import containers, registry

SECTIONS = [
    "clock",
    "kernel",
    "interfaces",
    "programs",
    "media and devices",
    "hardware",
    "worlds",
    "commands",
]


@pytest.fixture(scope="module")
def answer() -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "tcpsbed", "doctor", "--json"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def named(answer: dict, section: str) -> dict:
    return {row["name"]: row for row in answer["sections"][section]}


def test_everything_is_told_in_sections(answer):
    assert list(answer["sections"]) == SECTIONS
    assert answer["cores"] >= 1 and answer["kernel"].startswith("Linux")


def test_every_world_is_ready_or_says_what_it_needs(answer):
    rows = named(answer, "worlds")
    assert set(rows) == {*registry.names(), *registry.pairs()}
    assert rows["virtual"]["there"] and rows["real"]["there"]
    for row in rows.values():
        assert row["there"] or row["remedy"]


def test_the_commands_that_people_try_first_have_a_verdict(answer, monkeypatch):
    rows = named(answer, "commands")
    assert list(rows) == ["tcpsbed demo", "tcpsbed demo network", "tcpsbed proxy", "tcpsbed netns"]
    assert rows["tcpsbed proxy"]["said"] == "ready, without root"
    spaces = [row["there"] for name, row in named(answer, "kernel").items() if "network namespaces" in name]
    assert rows["tcpsbed netns"]["there"] == (any(spaces) and named(answer, "kernel")["device tun"]["there"])

    def judged(**found: bool) -> dict[str, Finding]:
        told = [Finding(name.replace("_", " "), there) for name, there in found.items()]
        return {one.name: one for one in commands.verdicts({"any": told})}

    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    ready = judged(renderer_osmesa=True, network_namespaces_without_root=True, device_tun=True)
    assert all(one.there and one.said.startswith("ready") for one in ready.values())
    bare = judged(renderer_egl=False, network_namespaces_without_root=False, device_tun=True)
    assert "renderer" in bare["tcpsbed demo"].said and "root" in bare["tcpsbed netns"].said
    assert bare["tcpsbed netns"].remedy and bare["tcpsbed demo"].remedy
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "mujoco" else object())
    assert judged(renderer_egl=True)["tcpsbed demo"].said == "needs mujoco"


def test_what_was_never_tried_with_hardware_says_so_and_with_what_instead(answer):
    rows = named(answer, "hardware")
    assert list(rows) == ["CoppeliaSim", "boards on a UART", "input devices (evdev)", "camera", "glove"]
    assert all("not tried with hardware: " in row["said"] for row in rows.values())


def test_hardware_that_is_connected_is_found_and_still_untried(monkeypatch):
    monkeypatch.setitem(
        hardware.KINDS, "glove", (lambda: "/dev/glove", "computed readings", "pick-and-place")
    )
    glove = {row.name: row for row in hardware.examine()}["glove"]
    assert glove.there and glove.said == "found /dev/glove; not tried with hardware: computed readings"


def test_what_stands_in_for_containers_is_named(monkeypatch):
    monkeypatch.setattr(containers.Containers, "missing", lambda: None)
    monkeypatch.setattr(containers, "lacking", lambda: "no engine")
    rows = {row.name: row for row in examination.worlds()}
    assert rows["containers"].there
    assert "by the fallback, plain network namespaces: no engine" in rows["containers"].said
    monkeypatch.setattr(containers, "lacking", lambda: None)
    assert "fallback" not in {row.name: row for row in examination.worlds()}["containers"].said


def test_the_clock_was_measured(answer):
    wake_ups = answer["timing"]["wake_ups"]
    assert len(wake_ups) == 3
    for row in wake_ups:
        assert row["ticks"] > 10
        assert 0 <= row["late_ns"]["p50"] <= row["late_ns"]["p99"]
    assert answer["timing"]["stamps"]["stamped"] > 0
    assert named(answer, "clock")["receive stamps of the kernel"]["there"]


def test_what_ip_can_add_is_found(answer):
    """A try agrees with a try of our own, on the one device that every kernel with namespaces has."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and ip")
    flags = "-n" if os.geteuid() == 0 else "-rn"
    alone = subprocess.run(["unshare", flags, "ip", "link", "add", "a0", "type", "veth"], capture_output=True)
    assert named(answer, "kernel")["device veth"]["there"] == (alone.returncode == 0)


def test_a_failure_keeps_the_last_words_and_the_remedy():
    def fail() -> str:
        return ran(["sh", "-c", "echo first >&2; echo no device >&2; exit 3"])

    found = attempt("thing", fail, "apt install thing")
    assert (found.there, found.said, found.remedy) == (False, "no device", "apt install thing")
    absent = attempt("thing", lambda: ran(["no-such-program-7"]))
    assert not absent.there and "no-such-program-7" in absent.said


def test_a_netlink_answer_is_read():
    """The family of the controller itself is in every kernel; one that is nowhere is refused."""
    assert kernel.family("nlctrl")
    with pytest.raises(OSError, match="no_such_family"):
        kernel.family("no_such_family")


def test_trying_keeps_no_privilege():
    before = os.sched_getscheduler(0)
    list(timing.privileges())
    assert os.sched_getscheduler(0) == before


def test_every_run_keeps_an_answer(shipped_scenarios: Path, tmp_path: Path):
    tcpsbed.run(shipped_scenarios / "quickstart.toml", out=tmp_path / "run", set=['duration="1 s"'])
    kept = json.loads((tmp_path / "run" / "doctor.json").read_text())
    assert list(kept["sections"]) == ["clock", "interfaces"]
    assert kept.keys() == doctor.glance().keys()
