"""Continuous integration of others: JUnit XML, annotations, and the steps of the action on the example repository."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from typer.testing import CliRunner

import tcpsbed
from tcpsbed.cli.app import app
from tcpsbed.lab.qos import ci, profile

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "action.yml"
EXAMPLE = ROOT / "examples" / "ci"

# The schema of JUnit XML that Jenkins publishes (xunit-plugin, junit-10.xsd), of what is used: children in any order,
# required and allowed attributes.
SCHEMA: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "disabled", "errors"}),
    "testsuite": (
        {"testcase", "properties", "system-out", "system-err"},
        {"name", "tests"},
        {
            "failures",
            "errors",
            "time",
            "disabled",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
            "file",
        },
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, set()),
    "testcase": (
        {"skipped", "error", "failure", "system-out"},
        {"name"},
        {"classname", "time", "status", "file"},
    ),
    "skipped": (set(), set(), {"message", "type"}),
    "error": (set(), set(), {"message", "type"}),
    "failure": (set(), set(), {"message", "type"}),
}


def refuse_invalid(text: str) -> ET.Element:
    """The root of JUnit XML that keeps the schema, and whose counts are right."""
    root = ET.fromstring(text.encode())
    assert root.tag == "testsuites"
    waiting = [root]
    while waiting:
        element = waiting.pop()
        children, required, optional = SCHEMA[element.tag]
        assert required <= set(element.attrib) <= required | optional, (element.tag, element.attrib)
        assert {child.tag for child in element} <= children, element.tag
        waiting += element
    for suite in (root, *root.iter("testsuite")):
        cases = list(suite.iter("testcase"))
        assert int(suite.get("tests", "")) == len(cases)
        assert all(len(case) <= 1 for case in cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if name in suite.attrib:
                assert int(suite.get(name, "")) == len(list(suite.iter(tag))), name
        float(suite.get("time", ""))
    return root


LIMITS = """name = "mine <&>"
[flows.haptic]
"delay_ms.p99" = { most = 30 }
"loss" = { most = 0.01 }
[flows.tactile-2]
loss = { most = 0 }
"""


def checked(file: Path, delay: float = 20.0, **more: Any) -> ci.Checked:
    """A run with one flow, compared with `LIMITS` in a file."""
    file.write_text(LIMITS)
    summary = {"world": "virtual", "seed": 1, "flows": {"haptic": {"delay_ms": {"p99": delay}, "loss": 0.0}}}
    return ci.checked(summary | more, profile.load(str(file)), "runs/a")


def test_every_limit_is_a_test_with_its_reason(tmp_path: Path) -> None:
    fine = refuse_invalid(ci.junit(checked(tmp_path / "mine.toml")))
    assert [case.get("name") for case in fine.iter("testcase")] == [
        "run",
        "delay_ms.p99 at most 30",
        "loss at most 0.01",
        "limits",
    ]
    assert (
        not list(fine.iter("failure"))
        and not list(fine.iter("error"))
        and len(list(fine.iter("skipped"))) == 1
    )
    broken = refuse_invalid(ci.junit(checked(tmp_path / "mine.toml", 41.25)))
    (failure,) = broken.iter("failure")
    assert failure.get("message") == "found 41.25 ms, allowed at most 30"
    nothing = refuse_invalid(ci.junit(checked(tmp_path / "mine.toml", math.nan)))
    assert [one.get("message") for one in nothing.iter("failure")] == ["found nothing, allowed at most 30"]


def test_a_disturbed_run_is_an_error_and_no_letter_breaks_the_xml(tmp_path: Path) -> None:
    said = "node <a> & \x1b[31mred\x00 ]]> \ud800"
    root = refuse_invalid(
        ci.junit(checked(tmp_path / "mine.toml", disturbances=[said], errors=["hook died"]))
    )
    (error,) = root.iter("error")
    assert error.text == "ERROR: hook died\nDISTURBED: node <a> & �[31mred� ]]> �"
    suite = root.find("testsuite")
    assert suite is not None and suite.get("name") == "mine <&>"


def test_annotations_name_file_and_line_and_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "a, b%.toml"
    lines = list(ci.github(checked(file, 41.25, disturbances=["stalled\n100 %: once"]), tmp_path))
    assert lines == [
        "::warning title=DISTURBED::stalled%0A100 %25: once",
        "::error file=a%2C b%25.toml,line=3,title=haptic delay_ms.p99::found 41.25 ms, allowed at most 30",
        "::notice title=mine <&>::skipped, because the run has no such flow: tactile-2",
    ]
    elsewhere = list(ci.github(checked(file, 41.25), tmp_path / "other"))
    assert elsewhere[0].startswith("::error title=haptic"), "a file outside the repository is no place"


def test_the_command_writes_both_and_github_asks_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    tcpsbed.run(EXAMPLE / "scenarios" / "teleop.toml", out=tmp_path / "run", set=['duration="2 s"'])
    mine = tmp_path / "mine.toml"
    mine.write_text('[flows.haptic]\n"delay_ms.p99" = { most = 1 }\n')
    words = ["check-qos", str(tmp_path / "run"), "--profile", str(mine)]
    plain = CliRunner().invoke(app, words)
    assert plain.exit_code == 1 and "::error" not in plain.output
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    found = CliRunner().invoke(app, [*words, "--junit", str(tmp_path / "qos.xml")])
    assert (
        found.exit_code == 1
        and "::error file=mine.toml,line=2,title=haptic delay_ms.p99::found " in found.stdout
    )
    refuse_invalid((tmp_path / "qos.xml").read_text(encoding="utf-8"))
    as_json = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(as_json.stdout)["passed"] is False and "::error" in as_json.stderr
    assert "::error" not in CliRunner().invoke(app, [*words, "--no-github"]).output
    theirs = tmp_path / "theirs.xml"
    theirs.write_text("mine")
    for more in (["--junit", str(theirs)], ["--junit", str(mine)], ["--junit", "x", "--page", "x"]):
        refused = CliRunner().invoke(app, [*words, *more])
        assert refused.exit_code == 2 and theirs.read_text() == "mine", more


def test_every_cell_of_a_sweep_keeps_the_limits(tmp_path: Path) -> None:
    (tmp_path / "out" / "cells").mkdir(parents=True)
    for seed, rate, delay in ((1, "1 Mbit/s", 41.0), (2, "1 Mbit/s", 20.0), (1, "2 Mbit/s", 10.0)):
        flows = {"haptic": {"delay_ms": {"p99": delay}, "loss": 0.0}}
        cell = {
            "settings": ["x=1", f"links.l1.rate={rate}", f"seed={seed}"],
            "summary": {
                "world": "virtual",
                "seed": seed,
                "flows": flows,
                "disturbances": ["late"] * (delay > 40),
            },
        }
        (tmp_path / "out" / "cells" / f"{rate[0]}{seed}.json").write_text(json.dumps(cell))
    (tmp_path / "out" / "sweep.json").write_text(json.dumps({"cells": ["11", "12", "21", "22"]}))
    mine = tmp_path / "mine.toml"
    mine.write_text(LIMITS)
    words = [
        "check-qos",
        str(tmp_path / "out"),
        "--profile",
        str(mine),
        "--junit",
        str(tmp_path / "qos.xml"),
        "--json",
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 3, "one of them was disturbed"
    told = json.loads(done.stdout)
    assert len(told["verdicts"]) == 6 and told["disturbed"] == ["links.l1.rate=1 Mbit/s, seed=1: late"]
    assert [one["flow"] for one in told["verdicts"] if not one["passed"]] == [
        "links.l1.rate=1 Mbit/s, seed=1: haptic"
    ]
    root = refuse_invalid((tmp_path / "qos.xml").read_text(encoding="utf-8"))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("10", "1", "1")
    (tmp_path / "out" / "sweep.json").write_text(json.dumps({"cells": []}))
    none = CliRunner().invoke(app, words)
    assert none.exit_code == 2 and "has no finished cell" in none.stderr


def resolved(text: str, inputs: dict[str, str]) -> str:
    """A text of the action with its expressions, of those that the action uses."""

    def value(match: re.Match[str]) -> str:
        room, _, name = match[1].strip().partition(".")
        assert room in ("inputs", "github"), match[0]
        return inputs[name] if room == "inputs" else {"action_path": str(ROOT)}[name]

    return re.sub(r"\$\{\{(.+?)\}\}", value, text)


def steps(given: dict[str, str]) -> list[tuple[str, str, dict[str, str]]]:
    """Name, script and environment of the action's steps for these inputs, of those that run a shell."""
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite" and set(given) <= set(action["inputs"])
    inputs = {}
    for name, about in action["inputs"].items():
        assert name in given or not about.get("required"), name
        inputs[name] = str(given.get(name, about.get("default", "")))
    found = []
    for step in action["runs"]["steps"]:
        assert ("run" in step) != ("uses" in step) and step["name"]
        if "run" in step:
            assert step["shell"] == "bash" and "${{" not in step["run"], (
                "inputs come by the environment: no injection"
            )
            if step.get("if") == "${{ inputs.install != '' }}" and not inputs["install"]:
                continue
            env = {key: resolved(text, inputs) for key, text in step["env"].items()}
            found.append((step["name"], step["run"], env))
        else:
            assert step["uses"].startswith("actions/")
    return found


def act(folder: Path, given: dict[str, str]) -> tuple[int, str]:
    """Runs the steps in a folder as GitHub does; the status of the first that fails, and what all printed."""
    programs = folder.parent / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "tcpsbed"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tcpsbed "$@"\n')
    program.chmod(0o755)
    paths = os.pathsep.join(filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH"))))
    base = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": paths,
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(folder),
    }
    said = ""
    for _, script, env in steps(given):
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=folder, env=base | env, capture_output=True, text=True, timeout=120
        )
        said += done.stdout + done.stderr
        if done.returncode:
            return done.returncode, said
    return 0, said


def workflow_inputs() -> dict[str, str]:
    """What the example's workflow gives the action."""
    workflow = yaml.safe_load((EXAMPLE / ".github/workflows/latency.yml").read_text(encoding="utf-8"))
    assert True in workflow, "YAML 1.1 reads the key `on` as true"
    (job,) = workflow["jobs"].values()
    (used,) = [step for step in job["steps"] if "/tcpsbed@" in step.get("uses", "")]
    given: dict[str, str] = used["with"]
    return given | {"install": ""}


def test_the_steps_of_the_action_hold_the_example_to_its_limits(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(EXAMPLE, repository)
    status, said = act(repository, workflow_inputs())
    assert status == 0, said
    root = refuse_invalid((repository / "tcpsbed-qos.xml").read_text(encoding="utf-8"))
    assert root.get("tests") == "5" and root.get("failures") == "0"
    assert (repository / "tcpsbed-run" / "report.html").is_file()
    summary = json.loads((repository / "tcpsbed-run" / "summary.json").read_text())
    assert summary["duration_s"] == 5.0, "the workflow's overrides count"


def test_the_steps_of_the_action_fail_where_a_limit_is_exceeded(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(EXAMPLE, repository)
    slower = workflow_inputs() | {"set": 'duration="2 s"\n\nlinks.wan.delay="60 ms"', "junit": "out/qos.xml"}
    status, said = act(repository, slower)
    assert status == 1
    assert "::error file=limits/teleop.toml,line=6,title=haptic delay_ms.p99::found 6" in said, said
    root = refuse_invalid((repository / "out" / "qos.xml").read_text(encoding="utf-8"))
    assert root.get("failures") == "2"
    status, said = act(repository, slower | {"scenario": "scenarios/none.toml", "out": "other"})
    assert status == 2 and "none.toml" in said and not (repository / "other").exists()


def test_inputs_are_no_shell(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(EXAMPLE, repository)
    given = workflow_inputs() | {"set": 'description="$(touch evil); `touch evil`"\nduration="3 s"'}
    status, said = act(repository, given)
    assert not (repository / "evil").exists() and status == 0, said


def test_the_page_shows_what_the_action_has() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    table = page[page.index("| input |") :].split("\n\n")[0]
    named = set(re.findall(r"`([a-z]+)`", "".join(line.split("|")[1] for line in table.splitlines())))
    assert named == set(action["inputs"])
    for text in re.findall(r"```yaml\n(.*?)```", page, re.S):
        assert yaml.safe_load(text)
