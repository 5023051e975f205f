"""A proxy from Python: what `tcpsbed proxy` does, as a context."""

from __future__ import annotations

from pathlib import Path

from tcpsbed import inputs
from tcpsbed.analysis.delivered import Margin
from tcpsbed.errors import ConfigError
from tcpsbed.proxy import verdict
from tcpsbed.proxy.door import parse
from tcpsbed.proxy.profile import STRAIGHT, load
from tcpsbed.proxy.proxy import Proxy
from tcpsbed.scenarios.origin import option
from tcpsbed.scenarios.overrides import Overrides, overrides


class Forward(Proxy):
    """Ports that forward through an emulated network until the context ends; then `good` and `str()` say how well."""

    @property
    def good(self) -> bool | None:
        """Whether the delay delivered was the delay set, within the margin of the command; None if nothing passed, and
        before the end.
        """
        if self.outcome is None:
            return None
        return verdict.judged(self.outcome, Margin(), self.profile.network)[0]

    def __str__(self) -> str:
        if self.outcome is None:
            return f"{self.profile.name} on port {', '.join(map(str, self.ports))}, at work"
        return verdict.told(self.outcome, Margin(), self.profile.network)


def forward(
    *ports: str,
    profile: Path | str | None = None,
    delay: str | None = None,
    loss: str | None = None,
    rate: str | None = None,
    set: Overrides = (),
    pcapng: Path | str | None = None,
) -> Forward:
    """Puts an emulated network between your own programs.

    Parameters
    ----------
    *ports : str
        `PORT=HOST:PORT/udp` each, or `/tcp`; port 0 is a free one (`.ports` has it).
    profile : Path or str, optional
        A profile by name, such as `lte`, or its file.
    delay, loss, rate : str, optional
        Of the link in each direction, such as `20 ms`, `1 %`, `2 Mbit/s`.
    set : mapping or sequence of str
        Other settings of the profile, as of `tcpsbed.run`.
    pcapng : Path or str, optional
        A new file for a capture of each packet at entry and exit.

    Returns
    -------
    Forward
        The proxy, at work until the context ends or `close()`.

    Raises
    ------
    ConfigError, WorldError
        If there is no network or port, or one cannot be opened.

    Examples
    --------
    >>> from tcpsbed import proxy
    >>> with proxy.forward("0=127.0.0.1:7100/udp", delay="20 ms") as link:  # doctest: +SKIP
    ...     print(link.ports[0])
    """
    named = {"delay": delay, "loss": loss, "rate": rate}
    given = [option(key, f"links.path.{key}", value) for key, value in named.items() if value is not None]
    if profile is None and not given and not set:
        allowed = 'profile="lte", or one of delay, loss, rate and set'
        raise ConfigError("found no network", key="profile", allowed=allowed)
    chosen = load(STRAIGHT if profile is None else str(profile), [*overrides(set), *given])
    file = None if pcapng is None else inputs.path(pcapng, "pcapng")
    if file is not None and file.exists():
        raise ConfigError("exists already", file=file, key="pcapng", allowed="another name")
    return Forward(chosen, [parse(text) for text in ports], capture=file)
