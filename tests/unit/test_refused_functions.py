"""Functions that differ between machines are refused wherever the order of events of virtual time is made."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def refused(file: str) -> set[str]:
    methods = tomllib.loads((ROOT / file).read_text())["disallowed-methods"]
    return {method["path"] for method in methods if "differs between machines" in method["reason"]}


def test_the_virtual_driver_may_use_no_function_of_the_machine_that_rooms_without_io_may_not() -> None:
    everywhere = refused("clippy.toml")
    assert refused("crates/tcps-run/clippy.toml") == everywhere
    names = "ln log log2 log10 exp sin cos tan asin acos atan atan2 sinh cosh tanh hypot cbrt powf powi"
    assert {f"f64::{name}" for name in names.split()} <= everywhere
