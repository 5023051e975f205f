"""Code named in a scenario: transports, robots, hooks (design: hooks)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import ConfigDict, Field, StrictInt, model_validator

from tcpsbed.config.model.span import Span
from tcpsbed.config.model.table import Names, Table
from tcpsbed.config.units import Parameters, Period, free

HookKind = Literal[
    "kinematics", "inverse_kinematics", "code", "decode", "sense", "feedback", "predict", "work"
]
HOOK_KINDS: tuple[str, ...] = get_args(HookKind)
"""What hooks can do."""


class Transport(Table):
    """A transport and its parameters; a string names it alone."""

    model_config = ConfigDict(extra="allow")
    shorthand: ClassVar[str | None] = "kind"
    kind: str = "udp"
    """A built-in transport, or `module:Class`."""

    @model_validator(mode="after")
    def _free(self) -> Self:
        """Parameters that can be handed on."""
        free(self.parameters())
        return self

    def parameters(self) -> dict[str, Any]:
        """What stands beside the kind."""
        return dict(self.model_extra or {})


class Robot(Table):
    """A robot; a string names it alone."""

    shorthand: ClassVar[str | None] = "run"
    run: str
    """A built-in robot such as "arm" or "mujoco-arm", or `module:Class`."""
    period_ns: Period = Field(1_000_000, alias="period")
    """The time between its steps."""
    senses: StrictInt | None = Field(None, ge=1, le=65535)
    """Most values that it senses; absent: those of the flow that it feeds."""
    authority: Literal["weight", "token"] = "weight"
    """Whom it obeys, where several operators command it: the mean by the weights of their flows, or who has the token."""
    params: Parameters = Field({})
    """Its parameters; quantities arrive in SI with the unit in their name."""


class Hook(Table):
    """A stage in the path of samples; a string names its code alone."""

    shorthand: ClassVar[str | None] = "run"
    kind: HookKind
    """What it does; the hook's own name says it if it is one of these."""
    run: str | None = None
    """A built-in name, `./lib.so:function` or `module:name`; `work` has none."""
    at: Names | None = None
    """The components (ids or kinds) where it runs."""
    flow: Names | None = None
    """The flows that it handles."""
    cost: Span | None = None
    """Time that it occupies a core."""
    delay: Span | None = None
    """Time that it takes without occupying a core."""
    period_ns: Period | None = Field(None, alias="period")
    """Output period of a periodic stage (`predict`)."""
    answers: Literal["ticks", "arrivals"] = "ticks"
    """Whether a periodic stage gives out a sample at its ticks, or when one arrives and at ticks only where none does."""
    other: Names | None = None
    """The flows whose newest values at its component it is told; absent: the newest of the other direction."""
    params: Parameters = Field({})
    """Its parameters; quantities arrive in SI with the unit in their name."""


class Channel(Table):
    """Flows of a session that travel together, both ways, over one transport."""

    flows: Names
    """The flows that share it."""
    transport: Transport | None = None
    """Their transport; absent: that of the flows."""
    between: tuple[str, str] | None = None
    """The two nodes that it joins; absent: every pair of nodes on the way."""
