"""Predictors of the user's are told the time between the samples that come to them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import tcpsbed
from tcpsbed import scenarios

SCENARIO = """
duration = "1 s"
[components]
tactile-operator = "a"
ss-com = "b"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "200 Hz"
source = "generated"
sample = "24 B"
codec = "f32"
[hooks.first]
kind = "predict"
run = "{first}"
at = "ss-com"
period = "2 ms"
[hooks.second]
kind = "predict"
run = "{second}"
at = "tactile-teleoperator"
period = "1 ms"
"""
CLASS = """
class First:
    expected_ns = 5_000_000

    def __init__(self, interval_ns):
        self.interval_ns = interval_ns

    def __call__(self, t_ns, index, x, other, y):
        assert self.interval_ns == self.expected_ns, self.interval_ns
        y[0] = 0
        return 1


class Second(First):
    expected_ns = 2_000_000


class Plain:
    def __call__(self, t_ns, index, x, other, y):
        y[0] = 0
        return 1
"""
C = """
#include <string.h>
#include "tcps_hook.h"
static int state;
void *near_init(const char *params) { return strstr(params, "\\"interval_ns\\":5000000") ? &state : NULL; }
int near(void *s, const tcps_in *in, tcps_out *out) { (void)s; (void)in; out->y[0] = 0; out->n = 1; return TCPS_EMIT; }
"""


def test_a_class_is_told_the_period_of_the_flow_or_of_the_stage_before_it(tmp_path):
    (tmp_path / "mine.py").write_text(CLASS)
    (tmp_path / "s.toml").write_text(SCENARIO.format(first="./mine.py:First", second="./mine.py:Second"))
    scenarios.check(scenarios.load(tmp_path / "s.toml"))
    run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "out")
    assert [stage["failures"] for stage in run.summary["stages"]] == [0, 0]
    assert run.summary["errors"] == []


def test_a_class_that_does_not_take_it_is_made_without(tmp_path):
    (tmp_path / "mine.py").write_text(CLASS)
    (tmp_path / "s.toml").write_text(SCENARIO.format(first="./mine.py:Plain", second="./mine.py:Plain"))
    assert tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "out").summary["errors"] == []


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)")
def test_a_function_in_c_is_told_among_its_parameters(tmp_path):
    (tmp_path / "near.c").write_text(C)
    header = Path(tcpsbed.__path__[0]) / "data"
    command = ["cc", "-shared", "-fPIC", f"-I{header}", "-o", "libnear.so", "near.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "mine.py").write_text(CLASS)
    (tmp_path / "s.toml").write_text(SCENARIO.format(first="./libnear.so:near", second="./mine.py:Second"))
    run = tcpsbed.run(tmp_path / "s.toml", out=tmp_path / "out")
    assert [stage["failures"] for stage in run.summary["stages"]] == [0, 0]
