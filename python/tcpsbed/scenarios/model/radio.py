"""Radio access of a link: NR-like (built in), LTE and Wi-Fi (over ns-3).

Over ns-3 the NR-like one is simulated by 5G-LENA, where that is there.
"""

from typing import Annotated, Literal

from tcpsbed.scenarios.fields import Called, Discriminator, Field, FiniteFloat
from tcpsbed.scenarios.model.table import Table
from tcpsbed.scenarios.units import Duration, PositiveDuration, Share


class Lena(Table):
    """Settings of 5G-LENA alone, which simulates the link over ns-3."""

    scheduler: Literal["tdma-rr", "tdma-pf", "tdma-mr", "ofdma-rr", "ofdma-pf", "ofdma-mr"] = "tdma-rr"
    """Scheduler of the base station: rr is round robin, pf proportional fair, mr the highest rate."""
    bandwidth_mhz: FiniteFloat = Field(20.0, ge=5, le=400)
    """Width of the carrier in MHz, for both directions in turns."""
    carrier_ghz: FiniteFloat = Field(3.5, ge=0.5, le=100)
    """Middle of the carrier in GHz."""
    distance_m: FiniteFloat = Field(50.0, ge=10, le=5_000)
    """Distance of the mobile from the base station, along the street, in m."""


class Nr(Table):
    """Slots, grants and retransmissions as in 5G; the rate of the link holds within its slots."""

    kind: Literal["nr"]
    slot_ns: PositiveDuration = Field(500_000, alias="slot")
    """Length of a slot."""
    pattern: Annotated[str, Field(pattern="^[DUSF]{1,1024}$")] = "DDDSU"
    """One letter per slot, repeated. `D` is downlink, `U` uplink, `S` neither, `F` both (FDD)."""
    access: Literal["request", "configured"] = "request"
    """Uplink grants. `"request"`: a grant is requested whenever the buffer was empty. `"configured"`: slots are
    granted permanently.
    """
    request_ns: PositiveDuration = Field(5_000_000, alias="request")
    """With `access = "request"`: period of scheduling requests."""
    grant_ns: Duration = Field(2_000_000, alias="grant")
    """With `access = "request"`: time from the request to the first usable slot."""
    configured_ns: PositiveDuration = Field(2_500_000, alias="configured")
    """With `access = "configured"`: period in whole slots. The first uplink slot in each period is granted."""
    processing_ns: Duration = Field(500_000, alias="processing")
    """Processing time of sender and receiver together, per packet."""
    block_error: Share = 0.1
    """Probability that a block fails and is retransmitted."""
    again_ns: Duration = Field(4_000_000, alias="again")
    """Time from a block to its retransmission."""
    retransmissions: int = Field(3, ge=0, le=64)
    """Largest number of retransmissions. After them the block is lost."""
    lena: Lena = Field(default_factory=Lena)
    """Settings for the same link [over ns-3](ns3.md#5g-lena) by 5G-LENA. Other worlds ignore this table;
    absent: `{}`.
    """


class Lte(Table):
    """LTE with its core network, simulated by ns-3."""

    kind: Literal["lte"]
    scheduler: Literal["pf", "rr", "fdmt", "tdmt", "tta", "fdbet", "tdbet", "cqa", "pss"] = "pf"
    """Scheduler of the base station, by its name in ns-3: pf is proportional fair, rr is round robin."""
    resource_blocks: Literal[6, 15, 25, 50, 75, 100] = 25
    """Bandwidth of each direction. 25 blocks are 5 MHz."""
    srs_periodicity: Literal[2, 5, 10, 20, 40, 80, 160, 320] = 40
    """Time between the sounding signals of a mobile, in ms. At most so many mobiles can attach, less a few."""
    distance_m: FiniteFloat = Field(50.0, ge=0.1, le=100_000)
    """Distance of the mobile from the base station, in m."""


class Wifi(Table):
    """Wi-Fi (802.11n) between a station and an access point, simulated by ns-3."""

    kind: Literal["wifi"]
    distance_m: FiniteFloat = Field(5.0, ge=0.1, le=10_000)
    """Distance of the station from the access point, in m."""


Radio = Annotated[Nr | Lte | Wifi, Discriminator("kind"), Called("radio")]
"""Radio access by kind."""
