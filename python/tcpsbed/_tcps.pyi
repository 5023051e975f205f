"""The native module: both drivers, records and their analysis."""

from collections.abc import Callable, Sequence
from os import PathLike

_Bytes = bytes

def run_virtual(
    plan_json: str,
    records_path: str | PathLike[str] | None = None,
    *,
    progress: Callable[[int], object] | None = None,
    pcapng_path: str | PathLike[str] | None = None,
    foreign_json: str | None = None,
) -> str:
    """Runs a plan in virtual time; `progress(t_ns)` stops it with a false answer. Returns the result as JSON."""

def ways(plan_json: str, pairs: list[tuple[int, int]]) -> list[list[int] | None]:
    """The links from one vertex of a plan's network to another for each of these pairs; `None` where no way leads there."""

def routes(plan_json: str) -> str:
    """The next link from every vertex of a plan's network to every vertex, as JSON; 65535 for none."""

def end_at_third(signals: int) -> None: ...
def mark_ends(address: int) -> None: ...
def run_node() -> int:
    """Serves one run as a node process, with JSON lines on standard input and output. Returns the exit status."""

RECORD_BYTES: int
"""Length of a row."""
HELD: int
"""Added to a component's number: its hold-until-done point."""
FORKED: str
"""In what every process says that code of the user's forked and gave back."""

def record_names() -> tuple[
    list[tuple[int, str, str]], list[tuple[int, str, str]], list[tuple[int, str, str]]
]:
    """Kinds of rows, reasons of a drop and kinds of stages: number, name, and the list of the plan that a row's `point`
    counts in.
    """

def analyse(
    records_path: str | PathLike[str], plan_json: str, warmup_ns: int = 0, grace_ns: int = 1_000_000_000
) -> str:
    """Figures of a stream of rows, as JSON."""

def merge(parts: Sequence[str | PathLike[str]], records_path: str | PathLike[str]) -> tuple[int, str]:
    """Merges files of rows, each nearly in order of time, into one; returns the number of rows and their SHA-256."""

def merge_captures(parts: Sequence[str | PathLike[str]], capture_path: str | PathLike[str]) -> int:
    """Merges captures of loops into one in the order of time; returns the number of packets."""

def monotonic_ns() -> int:
    """CLOCK_MONOTONIC in nanoseconds."""

def measure_timing(seconds: float) -> str:
    """How late loops wake up here, in each way of waiting, and how old a kernel's receive stamp is: measured, as JSON."""

class Arriving:
    """A packet that comes to a queue of your own."""

    @property
    def number(self) -> int:
        """What it is called from now on."""

    @property
    def bytes(self) -> int:
        """Its size on the wire."""

    @property
    def flow(self) -> int:
        """Its flow, or 32768 plus the number of the traffic entry."""

    @property
    def dscp(self) -> int:
        """Its code point."""

def check_network_code(what: str, name: str, params_json: str) -> None:
    """Refuses a `queue` discipline or background `source` of the user's that a run would refuse."""

def tables() -> str:
    """What a scenario can name, with its parameters, as JSON: `{"queue": [{"id", "name", "doc", "params": [...]}]}`."""

def completed(room: str, name: str, params_json: str) -> str:
    """The parameters of an entry of a room, complete, as JSON.

    Raises
    ------
    ValueError
        With the key, what was found and what is allowed.
    """

def builtins() -> dict[str, list[str]]:
    """What a scenario can name: `hooks`, `robots`, `predictors`, `transports`."""

def check_transport(name: str, params_json: str) -> None:
    """Raises `ValueError` where a run would refuse the transport with these parameters."""

def check_hook(name: str, params_json: str, *, kind: str = "work") -> None:
    """Raises `ValueError` where a run would refuse the hook; `kind` is that of its stage. Paths must be resolved."""

def check_robot(name: str, params_json: str) -> None:
    """Raises `ValueError` where a run would refuse the robot. Paths must be resolved."""

def check_playout(kind: str, params_json: str) -> None:
    """Raises `ValueError` where a run would refuse the playout policy with these parameters."""

class Refused(ValueError):
    """A parameter cannot be as it is."""

    key: str
    """Its key, with the unit; empty: all of them together."""
    found: str
    """What was there."""
    allowed: str
    """What may stand there."""

def complete(table_json: str, given_json: str) -> str:
    """Parameters with defaults for what is absent, checked by a table of `{key, unit, min, max, default, doc}`.

    Raises
    ------
    Refused
        If one cannot be as it is.
    """

def version() -> str:
    """Version of the native module."""

def time_hook(code_json: str, rounds: int) -> list[float]:
    """Nanoseconds per call of a hook, one figure for each of `rounds` blocks of 1000 calls."""

def step_batch(spec_json: str) -> str:
    """The step experiment in every cell of a grid, on all cores; returns the cells' figures as JSON."""

def step_phase(seed: int, run: int, period_ns: int) -> int:
    """When the far side of the step experiment ticks in a run, behind the controller."""

def bilateral(spec_json: str, wanted: Sequence[float]) -> list[list[float]]:
    """A bilateral scheme at 1 kHz; for each tick x, v of the device, x of the slave, force, contact, energy, messages."""

def replay_predictor(
    name: str, params_json: str, rows: Sequence[float], columns: int, period_ns: int, horizons: Sequence[int]
) -> tuple[list[tuple[float, float]], float, list[float]]:
    """A recording through a predictor: (RMS, worst) a horizon; ns an update; ns a guess, one a horizon."""

def playout(
    params_json: str,
    arrivals_ns: Sequence[int],
    origins_ns: Sequence[int],
    indices: Sequence[int],
    end_ns: int,
) -> list[tuple[str, int, int]]:
    """What a playout policy does with arrivals: a list of (what, moment, index of the sample or -1)."""

class Told:
    """What a sender has learnt of its packets."""

    @property
    def kind(self) -> str:
        """`delay`, `report`, `round_trip`, `arrival` or `silence`."""

    @property
    def fresh(self) -> bool:
        """Of a delay: false if the same measurement has been told before."""

    @property
    def lost(self) -> bool:
        """Of an arrival: true if the packet never came."""

    @property
    def sent_ns(self) -> int | None:
        """Of an arrival: when the packet left; of a delay: when its earliest sample was made. On this node's clock."""

    @property
    def arrived_ns(self) -> int | None:
        """Of an arrival: when it came, on the receiver's clock from a moment that nobody knows."""

    @property
    def round_trip_ns(self) -> int | None:
        """The round trip, where one is known: of a delay it is the sum of both ways."""

    @property
    def wire_bytes(self) -> int:
        """Of a delay and of an arrival: size of the packet as links account for it."""

    @property
    def fragments(self) -> int:
        """Of a delay: samples in the packet."""

    @property
    def loss(self) -> float | None:
        """Of a report: share of packets lost."""

    @property
    def jitter_ns(self) -> int | None:
        """Of a report: smoothed jitter."""

class Incoming:
    """What has happened to an endpoint in Python; valid during the call only."""

    @property
    def bytes(self) -> _Bytes:
        """The bytes of the sample or of the datagram; empty at a timeout."""

    @property
    def flow(self) -> int:
        """Of a sample: its flow."""

    @property
    def index(self) -> int:
        """Of a sample: its number."""

    @property
    def origin_ns(self) -> int:
        """Of a sample: when it was made."""

    @property
    def echo(self) -> _Bytes:
        """Of a sample: the echo command on it, for the other side; empty if there is none."""

    @property
    def received_ns(self) -> int:
        """Of a datagram: when the kernel had it."""

class Outgoing:
    """What an endpoint in Python wants done."""

    def transmit(
        self, datagram: bytes | bytearray, flow: int, index: int, wire_bytes: int | None = None
    ) -> None:
        """Sends a datagram for a flow and the (first) sample in it; absent `wire_bytes`: its bytes and 54 more."""

    def deliver(
        self, flow: int, index: int, origin_ns: int, sample: bytes | bytearray, echo: bytes | None = None
    ) -> None:
        """Hands a sample to the local side, with the echo command that came with it."""

    def wake_at(self, t_ns: int | None) -> None:
        """Asks for a call with `"timeout"` at that moment; `None` takes it back."""

    def malformed(self) -> None:
        """Counts a datagram that is not what it should be."""

    def duplicate(self) -> None:
        """Counts a datagram that repeats something already had."""

    def incomplete(self) -> None:
        """Counts a sample that is given up because a part of it never came."""

class Proxy:
    """An emulated network between ports, at work in threads of its own."""

    def __init__(self, settings_json: str) -> None: ...
    def addresses(self) -> list[str]:
        """Where clients come, in the order of the doors."""

    def snapshot(self) -> str:
        """Counts so far and delays of the last second, as JSON."""

    def change(self, network_json: str) -> None:
        """Puts another network in the place of the present one."""

    def ended(self) -> bool:
        """Whether it has ended by itself."""

    def stop(self) -> str:
        """Ends it; how it went, as JSON."""

def run_isolated(settings: str | PathLike[str], report: str | PathLike[str]) -> int:
    """Runs commands behind an emulated network, in namespaces that end with them; the calling process must have one
    thread. Settings are read from a file; how it went is written to `report`, both JSON. Returns the exit status of the
    near command; 2 where it could not begin.
    """

class Drain:
    """Drains rings of rows in shared memory into files."""

    def __init__(
        self, pairs: Sequence[tuple[str | PathLike[str], str | PathLike[str]]], *, resume: bool = False
    ) -> None: ...
    def drain(self) -> bytes:
        """Moves all published rows to the files and returns them, unsorted."""

    def silences_ns(self) -> list[int]:
        """How long the loop of each ring has not run, in ns; 0 before it has begun."""

    def lost(self) -> int:
        """Rows lost in all rings."""
