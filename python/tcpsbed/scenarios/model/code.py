"""Code named in a scenario: transports, robots, hooks (design: hooks)."""

from typing import Any, ClassVar, Literal, get_args

from tcpsbed.scenarios.fields import Field
from tcpsbed.scenarios.model.span import Span
from tcpsbed.scenarios.model.table import Names, Table
from tcpsbed.scenarios.units import Dscp, Parameters, Period, free

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
    """A built-in robot such as "arm" or "mujoco-arm", or `module:Class`."""
    period_ns: Period = Field(1_000_000, alias="period")
    """The time between its steps."""
    senses: int | None = Field(None, ge=1, le=65535)
    """Largest number of values that it senses; absent: those of the flow that it feeds."""
    authority: Literal["weight", "token"] = "weight"
    """Whom it obeys among several operators: the mean by the weights of their flows, or the holder of the token."""
    params: Parameters = Field({})
    """Its parameters; quantities arrive in SI with the unit in their name."""


class Hook(Table):
    """A stage in the path of samples; a string names its code alone."""

    shorthand: ClassVar[str | None] = "run"
    kind: HookKind
    """What it does; absent: the entry's name."""
    run: str | None = None
    """A built-in name, `./lib.so:function` or `module:name`; `work` has none."""
    at: Names | None = None
    """The components (ids or kinds) where it runs."""
    flow: Names | None = None
    """Its flows."""
    cost: Span | None = None
    """Time on a core."""
    delay: Span | None = None
    """Time without occupying a core."""
    period_ns: Period | None = Field(None, alias="period")
    """Output period of a periodic stage (`predict`)."""
    answers: Literal["ticks", "arrivals"] = "ticks"
    """Whether a periodic stage outputs at its ticks, or at each arrival and by its timer only without one."""
    other: Names | None = None
    """The flows whose newest values at its component it receives; absent: the newest of the other direction."""
    params: Parameters = Field({})
    """Its parameters; quantities arrive in SI with the unit in their name."""


class Channel(Table):
    """Flows of a session that share one transport, in both directions."""

    flows: Names
    """The flows that share it."""
    transport: Transport | None = None
    """Their transport; absent: that of the flows."""
    between: tuple[str, str] | None = None
    """The two nodes that it joins; absent: every pair of nodes on the path."""
    dscp: Dscp | None = None
    """Code point of its packets; absent: that of the flow of each packet."""
