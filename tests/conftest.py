"""What all tests share: abilities that a test may need, and the time each folder took against its budget."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

from tcpsbed.worlds import memory

pytest_plugins = ["again", "browsing"]
ROOT = Path(__file__).resolve().parent.parent
BUDGET_S = {"unit": 240, "paper": 300, "realtime": 330, "interop": 150}
SPENT_S: dict[str, float] = defaultdict(float)
BESIDE = ROOT.parent / "shared" / "data"
"""Recordings beside the project; without these, and unless TCPSBED_DATA is set, those in `data`."""
if not os.environ.get("TCPSBED_DATA"):
    os.environ["TCPSBED_DATA"] = str(BESIDE if BESIDE.is_dir() else ROOT / "data")

# As from a terminal, also under nohup or in the background, where requests to end are ignored: what tests start inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# A runner would make the options of all commands anew for each command that a test types, in a tenth of a second.
typer.testing._get_command = cache(typer.testing._get_command)

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Shared memory of these tests' own: other tests at the same time would report and remove what dead runs leave."""
    own = tempfile.TemporaryDirectory(prefix="tests-of-tcpsbed-", dir=memory.home())
    Path(own.name).chmod(0o1777)
    os.environ[memory.VARIABLE] = own.name
    config.add_cleanup(own.cleanup)


@cache
def lack(what: str) -> str | None:
    """Why a test that needs `what` cannot run here; None if it can."""
    if what == "root":
        return None if os.geteuid() == 0 else "needs root"
    if what == "tun":
        return None if os.access("/dev/net/tun", os.R_OK | os.W_OK) else "needs /dev/net/tun (module tun)"
    if what == "tun:others":
        there = Path("/dev/net/tun")
        free = there.exists() and there.stat().st_mode & 0o006 == 0o006
        return None if free else "needs /dev/net/tun (module tun) that everybody may use"
    if what == "ipv6":
        return None if Path("/proc/net/if_inet6").exists() else "needs IPv6"
    if what == "netns":
        made = shutil.which("unshare") and subprocess.run(["unshare", "-rn", "true"], capture_output=True)
        return None if made and made.returncode == 0 else "needs network namespaces (unshare -rn)"
    if what == "ns3":
        from tcpsbed.worlds import ns3_program

        reason = ns3_program.missing()
        return None if reason is None else f"needs {reason}"
    if what == "mininet":
        from tcpsbed.worlds import mininet

        reason = mininet.Hosts.missing()
        return None if reason is None else f"needs {reason}"
    if what == "containers":
        from tcpsbed.worlds import containers

        return None if containers.engine() else f"needs a container engine: {containers.lacking()}"
    if what.startswith("cores:"):
        wanted = int(what.removeprefix("cores:"))
        found = len(os.sched_getaffinity(0))
        return None if found >= wanted else f"needs {wanted} cores, has {found}"
    if what.startswith("python:"):
        package = what.removeprefix("python:")
        return None if importlib.util.find_spec(package) else f"needs the package {package}"
    return None if shutil.which(what) else f"needs the command {what}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what cannot run here, with the reason."""
    for mark in item.iter_markers("needs"):
        for what in mark.args:
            if reason := lack(what):
                pytest.skip(reason)


def folder(nodeid: str) -> str:
    """The folder of `tests` that a test is in."""
    return nodeid.split("/")[1] if nodeid.count("/") > 1 else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of a folder the mark of its name, and unit tests in the world `real` theirs; what is `beside` is one of
    those that would run alone, of which tests/unit has none.
    """
    for item in items:
        if (name := folder(item.nodeid)) in ("paper", "interop", "realtime"):
            item.add_marker(name)
        if name == "unit" and "real" in item.name.rstrip("]").replace("[", "-").split("-"):
            item.add_marker("realtime")
            item.add_marker("beside")
        marks = {mark.name for mark in item.iter_markers()}
        if "beside" in marks and not marks & {"interop", "realtime"}:
            raise pytest.UsageError(
                f"{item.nodeid}: only tests of the clock and of other programs are `beside`"
            )
        if name == "unit" and "beside" not in marks and marks & {"interop", "realtime"}:
            raise pytest.UsageError(f"{item.nodeid}: what runs alone is not in tests/unit")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a test's set-up, call and tear-down to its folder."""
    SPENT_S[folder(report.nodeid)] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time of each folder against its budget."""
    for name, budget_s in BUDGET_S.items():
        if name in SPENT_S:
            over = ", over its budget" if SPENT_S[name] > budget_s else ""
            terminalreporter.write_line(f"[time] tests/{name}: {SPENT_S[name]:.0f} s of {budget_s} s{over}")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shipped_scenarios(root: Path) -> Path:
    """The shipped scenarios."""
    return root / "scenarios"
