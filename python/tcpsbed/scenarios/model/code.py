"""Code named in a scenario: transports, robots, hooks (design: hooks)."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Unpack, get_args

from tcpsbed.scenarios.fields import BeforeValidator, Called, Field
from tcpsbed.scenarios.model.entries import entries
from tcpsbed.scenarios.model.span import Span
from tcpsbed.scenarios.model.table import Names, Table
from tcpsbed.scenarios.units import Dscp, Parameters, Period, PositiveSize, free, refuse, shown

if TYPE_CHECKING:
    from tcpsbed.scenarios.model.keys import ChannelKeys, HookKeys

HookKind = Literal[
    "kinematics", "inverse_kinematics", "code", "decode", "sense", "feedback", "predict", "work"
]
HOOK_KINDS: tuple[str, ...] = get_args(HookKind)
"""What hooks can do."""


class Transport(Table):
    """A transport and its parameters; a string names it alone."""

    extra: ClassVar[bool] = True
    shorthand: ClassVar[str | None] = "kind"
    kind: str = "udp"
    """A built-in transport, or `module:Class`."""

    def _check(self) -> None:
        """Parameters that can be handed on."""
        free(self.parameters())

    def parameters(self) -> dict[str, Any]:
        """The keys beside the kind."""
        return dict(self.model_extra or {})


class Robot(Table):
    """A robot; a string names it alone."""

    shorthand: ClassVar[str | None] = "run"
    run: str
    """A built-in robot (`"arm"`, `"follower"`, `"step"`, `"wall_mass"`), one of the other [robots](robots.md)
    (`"mujoco-arm"`, `"microscope"` ...), or your own: `"module:Class"` or `"./robot.py:Class"`.
    """
    period_ns: Period = Field(1_000_000, alias="period")
    """Time between its steps."""
    senses: int | None = Field(None, ge=1, le=65535)
    """Largest number of values that it senses; absent: the values of the flow that it feeds."""
    authority: Literal["weight", "token"] = "weight"
    """Which operator the robot obeys if [several operators](#sessions) command it. The key `authority` of a
    [flow](#flows) is something else: the weight of one operator.
    """
    params: Parameters = Field({})
    """Parameters of the robot."""


class Isolate(Table):
    """Limits of a hook that runs in a process of its own; `true` alone: the limits below."""

    time_ns: Period = Field(1_000_000_000, alias="time")
    """Longest wall-clock time of one call."""
    memory_bytes: PositiveSize = Field(1_000_000_000, alias="memory")
    """Address space that the process may map beyond that of Python and numpy."""


def _isolated(value: Any) -> Any:
    """`true` as a table with the default limits, `false` as none."""
    if isinstance(value, bool):
        return {} if value else None
    if value is not None and not isinstance(value, dict | Isolate):
        raise refuse(f"found {shown(value)}", 'true, or limits such as { time = "20 ms", memory = "500 MB" }')
    return value


class Hook(Table):
    """A stage in the path of samples; a string names its code alone."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[HookKeys]) -> None: ...

    shorthand: ClassVar[str | None] = "run"
    kind: HookKind
    """What the hook does; absent: the name of the entry."""
    run: str | None = None
    """A built-in name, `"./lib.so:function"`, `"./file.py:name"` or `"module:name"`; absent: required except
    for `work`.
    """
    at: Names | None = None
    """Components or kinds where the hook runs; absent: by kind."""
    flow: Names | None = None
    """Its flows; absent: by kind."""
    cost: Span | None = None
    """Time that a sample occupies a core; absent: no cost."""
    delay: Span | None = None
    """Time that a sample spends without occupying a core."""
    period_ns: Period | None = Field(None, alias="period")
    """For `predict`: the hook outputs one sample in each period. Without a period it outputs one per arrival."""
    answers: Literal["ticks", "arrivals"] = "ticks"
    """With a `period`: when the hook outputs. `"ticks"`: at its own ticks, for which an arrival waits.
    `"arrivals"`: at each arrival, and by its timer after one and a half periods without an arrival.
    """
    other: Names | None = None
    """Flows whose newest values at this component the hook receives. The values are concatenated in this order,
    once each flow has one; absent: the newest value of any flow of the other direction.
    """
    isolate: Annotated[
        Isolate | None,
        BeforeValidator(_isolated, json_schema_input_type=bool | Isolate),
        Called("true or a table"),
    ] = None
    """Whether a Python class, or a function in C, runs in [a process of its own](hooks.md#a-process-of-its-own), with
    limits on time and memory; absent: it runs in the process of its node.
    """
    params: Parameters = Field({})
    """Parameters of the code."""


if TYPE_CHECKING:
    _Method = str
else:
    _Method = Literal[tuple(entries("security"))]


class Security(Table):
    """What protects a channel, with parameters; a string names the method alone."""

    extra: ClassVar[bool] = True
    shorthand: ClassVar[str | None] = "kind"
    kind: _Method
    """The method: `"aead"` encrypts and authenticates, `"hmac"` only authenticates, `"srtp"` is SRTP for the transport
    `rtp`, `"tls"` is TLS 1.3 for `tcp` and `quic`.
    """

    def _check(self) -> None:
        """Parameters that can be handed on."""
        free(self.parameters())

    def parameters(self) -> dict[str, Any]:
        """The keys beside the kind."""
        return dict(self.model_extra or {})


class Channel(Table):
    """Flows of a session that share one transport, in both directions."""

    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[ChannelKeys]) -> None: ...

    flows: Names
    """Flows that share the channel, of both directions."""
    transport: Transport | None = None
    """Transport that they share; absent: the transport of the flows."""
    between: Annotated[tuple[str, str], Called("two nodes")] | None = None
    """The two nodes between which the flows share the channel; absent: every pair on the path."""
    dscp: Dscp | None = None
    """Code point of its packets; absent: that of the flows."""
    security: Security | None = None
    """What protects it from others on the network: [security](security.md); absent: nothing."""
