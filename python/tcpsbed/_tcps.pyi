"""The native module: both drivers, records and their analysis."""

from collections.abc import Callable, Sequence
from os import PathLike

_Bytes = bytes

def run_virtual(
    plan_json: str,
    records_path: str | PathLike[str] | None = None,
    *,
    progress: Callable[[int, str], object] | None = None,
    pcapng_path: str | PathLike[str] | None = None,
    foreign_json: str | None = None,
    every_ns: int | None = None,
) -> str:
    """Runs a plan in virtual time. Returns the result as JSON.

    `progress(t_ns, split)` is called regularly, and every `every_ns` with the split of the samples' time so far. It returns
    false to stop the run, or a list of events for the run, as JSON.
    """

def ways(plan_json: str, pairs: list[tuple[int, int]]) -> list[list[int] | None]:
    """The links from one vertex of a plan's network to another for each of these pairs; `None` if there is no path."""

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
PARTS: Sequence[str]
"""What the time of a sample is spent on, in the order of its path."""
LINK_BYTES: int
"""Bytes that links count around an IP packet: preamble, Ethernet header and check sequence."""
BOARD_BYTES: int
"""Longest sample on the line of a board."""
BOARD_CHANNELS: int
"""Most flows of a board."""
BOARD_SAFE_VALUES: int
"""Most values of a safe output that one frame tells beside the roles of all channels."""
MOST_USERS: int
"""Most users of an entry of background traffic."""
STACK_BYTES: int
"""Bytes that links count around a datagram: UDP, IPv4 and the link."""
FORKED: str
"""Part of the message of a process that user code forked and returned from."""

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
    """Measured wake-up lateness of loops in each way of waiting, and age of the kernel's receive stamps, as JSON."""

class Arriving:
    """A packet that arrives at a queue of your own, or starts on a line with a loss model of your own."""

    @property
    def number(self) -> int:
        """Its number, which identifies it."""

    @property
    def bytes(self) -> int:
        """Its size on the wire."""

    @property
    def flow(self) -> int:
        """Its flow, or 32768 plus the number of the traffic entry."""

    @property
    def dscp(self) -> int:
        """Its code point."""

def check_attacks(plan_json: str) -> None:
    """Refuses attacks of a plan that a run would refuse; in a network with code of the user's they are not judged.

    Raises
    ------
    ConfigError
        If one cannot be as it is; its text begins with `events.NAME: attack.KEY: `.
    """

def check_link(link_json: str) -> None:
    """Refuses a link of a plan that no network takes, wherever it leads and whatever its queue is.

    Raises
    ------
    Refused
        If it cannot be as it is.
    """

def check_users(model_json: str) -> None:
    """Refuses the model of users of background traffic that no network takes, whichever link they are to fill.

    Raises
    ------
    Refused
        If it cannot be as it is.
    """

def check_network_code(what: str, name: str, params_json: str) -> None:
    """Refuses a `queue` discipline, `loss` model or background `source` of the user that a run would refuse."""

def tables() -> str:
    """What a scenario can name, with its parameters, as JSON: `{"queue": [{"id", "name", "doc", "params": [...]}]}`."""

def completed(room: str, name: str, params_json: str) -> str:
    """The parameters of an entry of a room, complete, as JSON.

    Raises
    ------
    Refused
        If a parameter is invalid.
    """

def builtins() -> dict[str, list[str]]:
    """What a scenario can name: `hooks`, `robots`, `predictors`, `transports`."""

def check_transport(name: str, params_json: str) -> None:
    """Raises a `TcpsbedError` if a run would refuse the transport with these parameters."""

def check_hook(name: str, params_json: str, *, kind: str = "work") -> None:
    """Raises a `TcpsbedError` if a run would refuse the hook; `kind` is that of its stage. Paths must be resolved."""

def check_robot(name: str, params_json: str) -> None:
    """Raises a `TcpsbedError` if a run would refuse the robot. Paths must be resolved."""

def check_playout(kind: str, params_json: str) -> None:
    """Raises a `TcpsbedError` if a run would refuse the playout policy with these parameters."""

def complete(table_json: str, given_json: str) -> str:
    """Parameters with defaults for what is absent, checked by a table of `{key, unit, min, max, default, doc}`.

    Raises
    ------
    Refused
        If a parameter is invalid.
    """

def t975(freedom: int) -> float:
    """The 0.975 quantile of Student's t: exact for 1 and 2 degrees of freedom, six digits beyond."""

def version() -> str:
    """Version of the native module."""

def time_hook(code_json: str, rounds: int) -> list[float]:
    """Nanoseconds per call of a hook, one figure for each of `rounds` blocks of 1000 calls."""

def sampled_system(system_json: str, tick_ns: int, bilinear: bool = False) -> str:
    """A plant of the step experiment, or a controller (`bilinear`), from tick to tick, as JSON: `{a, b, c, d}`."""

def plant_response(plant_json: str, tick_ns: int, commands: list[float]) -> list[float]:
    """What a plant of the step experiment, which may be code, answers to commands that hold for a tick each."""

def step_batch(spec_json: str) -> str:
    """The step experiment in every cell of a grid, on all cores; returns the cells' figures as JSON."""

class Ledger:
    """What became of the samples of all flows of a run that goes on."""

    def __init__(self, plan_json: str, warmup_ns: int, grace_ns: int) -> None: ...
    @property
    def last_ns(self) -> int: ...
    def add(self, rows: bytes) -> bytes:
        """Takes rows; a byte for each says whether it is an arrival and of what sort."""
    def totals(self, now_ns: int) -> list[tuple[int, int, int, float, float | None]]: ...
    def counts(self) -> list[tuple[int, int]]: ...
    def losses(self, from_ns: int, to_ns: int) -> list[float | None]: ...
    def forget(self) -> None: ...

def step_response(
    c: float, t0_ms: float, moments_ms: Sequence[float], values: Sequence[float]
) -> list[float]:
    """Of a step to `1/c` at `t0_ms`: rise time in ms, overshoot and undershoot in percent, settling time in ms, error."""

def step_phase(seed: int, run: int, period_ns: int, name: str = "") -> int:
    """Phase of the far side's ticks behind the controller's, in a run of the step experiment; without a name as in
    `step_batch`.
    """

def bilateral(spec_json: str, wanted: Sequence[float]) -> list[list[float]]:
    """A bilateral scheme at 1 kHz; for each tick x, v of the device, x of the slave, force, contact, energy, messages."""

def replay_predictor(
    name: str, params_json: str, rows: Sequence[float], columns: int, period_ns: int, horizons: Sequence[int]
) -> tuple[list[tuple[float, float]], float, list[float]]:
    """A recording through a predictor: (RMS, worst) per horizon; ns per update; ns per prediction, one per horizon."""

def playout(
    params_json: str,
    arrivals_ns: Sequence[int],
    origins_ns: Sequence[int],
    indices: Sequence[int],
    end_ns: int,
) -> list[tuple[str, int, int]]:
    """Actions of a playout policy for arrivals: a list of (action, time, index of the sample or -1)."""

class Observation:
    """Feedback to a sender about its packets."""

    @property
    def kind(self) -> str:
        """`delay`, `report`, `round_trip`, `arrival` or `silence`."""

    @property
    def fresh(self) -> bool:
        """Of a delay: false if the same measurement was reported before."""

    @property
    def lost(self) -> bool:
        """Of an arrival: true if the packet was lost."""

    @property
    def sent_ns(self) -> int | None:
        """Of an arrival: when the packet left; of a delay: when its earliest sample was made. On this node's clock."""

    @property
    def arrived_ns(self) -> int | None:
        """Of an arrival: its time on the receiver's clock, with an unknown offset."""

    @property
    def round_trip_ns(self) -> int | None:
        """The round trip, if known; of a delay the sum of both directions."""

    @property
    def wire_bytes(self) -> int:
        """Of a delay and of an arrival: size of the packet as counted by links."""

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
    """Input of an endpoint in Python; valid during the call only."""

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
        """Of a datagram: its receive time in the kernel."""

class Outgoing:
    """Actions of an endpoint in Python."""

    def transmit(
        self,
        datagram: bytes | bytearray,
        flow: int,
        index: int,
        wire_bytes: int | None = None,
        again: bool = False,
    ) -> None:
        """Sends a datagram for a flow and the (first) sample in it; absent `wire_bytes`: its bytes plus 54. `again`:
        a retransmission.
        """

    def deliver(
        self, flow: int, index: int, origin_ns: int, sample: bytes | bytearray, echo: bytes | None = None
    ) -> None:
        """Hands a sample to the local side, with its echo command."""

    def wake_at(self, t_ns: int | None) -> None:
        """Requests a call with `"timeout"` at that time; `None` cancels the request."""

    def malformed(self) -> None:
        """Counts a malformed datagram."""

    def duplicate(self) -> None:
        """Counts a duplicate datagram."""

    def incomplete(self) -> None:
        """Counts a sample that is given up because a part was lost."""

class Proxy:
    """An emulated network between ports, in threads of its own."""

    def __init__(self, settings_json: str) -> None: ...
    def addresses(self) -> list[str]:
        """Addresses for clients, in the order of the doors."""

    def snapshot(self) -> str:
        """Counts so far and delays of the last second, as JSON."""

    def start_ns(self) -> int:
        """When its time was 0 (CLOCK_MONOTONIC)."""

    def change(self, network_json: str, event: int | None = None) -> None:
        """Replaces the network; a record has it as the event of this number."""

    def event(self, line_json: str, network_json: str) -> None:
        """Asks for an event of the record's plan, which leads to this network."""

    def ended(self) -> bool:
        """Whether it has ended unexpectedly."""

    def stop(self) -> str:
        """Stops it. Returns the outcome as JSON."""

def run_isolated(settings: str | PathLike[str], report: str | PathLike[str]) -> int:
    """Runs commands behind an emulated network, in namespaces that end with them; the calling process must have one
    thread. Settings are read from a file; the outcome is written to `report`, both JSON. Returns the exit status of the
    near command; 2 if it did not start.
    """

class Drain:
    """Drains rings of rows in shared memory into files."""

    def __init__(
        self, pairs: Sequence[tuple[str | PathLike[str], str | PathLike[str]]], *, resume: bool = False
    ) -> None: ...
    def drain(self) -> bytes:
        """Moves all published rows to the files and returns them, unsorted."""

    def silences_ns(self) -> list[int]:
        """Time since the loop of each ring last ran, in ns; 0 before its start."""

    def lost(self) -> int:
        """Rows lost in all rings."""
