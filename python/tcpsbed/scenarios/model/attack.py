"""Attacks: what somebody does who stands at a link and has no keys."""

from typing import Annotated, Literal

from tcpsbed.scenarios.fields import Called, Discriminator, Field, FiniteFloat
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import Frequency, Offset, PositiveDuration, PositiveRate, PositiveSize, Share


class _Attack(Table):
    link: Annotated[str, Called("link")]
    """One direction of a link, such as `"wan.forward"`. The attacker hears what is to pass it, and sends from its start.
    """
    duration_ns: PositiveDuration = Field(alias="duration")
    """How long the attack lasts."""


class _OnFlow(_Attack):
    flow: Annotated[str, Called("flow")]
    """The flow that is attacked: its datagrams from the node before the link to the node behind it."""


class Forge(_OnFlow):
    """Datagrams of the flow's own transport, with samples that its source never made; of `tcp` segments that continue the
    connection.
    """

    kind: Literal["forge"]
    rate_hz: Frequency = Field(100.0, alias="rate")
    """Forged samples per second."""
    values: list[FiniteFloat] = Field([], min_length=1)
    """Values of each forged sample, as many as the flow has there; absent: random bytes."""


class ReplayAttack(_OnFlow):
    """Datagrams that the attacker heard are sent once more."""

    kind: Literal["replay"]
    after_ns: PositiveDuration = Field(500_000_000, alias="after")
    """How long after it was heard a datagram is sent again. Longer than the path's delay, or the replay may be first."""
    share: Share = 1.0
    """Probability that a datagram is replayed."""


class Tamper(_OnFlow):
    """A bit of passing datagrams is changed, two thirds from their beginning, and checksums of UDP and IP are made right."""

    kind: Literal["tamper"]
    share: Share = 1.0
    """Probability that a datagram is changed."""


class Flood(_OnFlow):
    """Random datagrams to the port where the flow's datagrams go."""

    kind: Literal["flood"]
    rate_bps: PositiveRate = Field(alias="rate")
    """Rate on the wire."""
    size_bytes: PositiveSize = Field(1000, alias="size")
    """Bytes of a datagram without headers, at most 65507 B."""


class Reset(_OnFlow):
    """Segments that end the connection of `tcp`, as if the node before the link had sent them."""

    kind: Literal["reset"]
    segment: Literal["rst", "fin"] = "rst"
    """What ends it: RST, or FIN."""
    rate_hz: Frequency = Field(10.0, alias="rate")
    """Segments per second."""


class ClockLie(_Attack):
    """The stamps of the reference in answers of [clock exchanges](#clocks) are changed."""

    kind: Literal["clock-lie"]
    offset_ns: Offset = Field(alias="offset")
    """What is added to them, such as `"10 ms"`."""


Attack = Annotated[
    Forge | ReplayAttack | Tamper | Flood | Reset | ClockLie, Discriminator("kind"), Called("attack")
]
"""An attack by kind."""
