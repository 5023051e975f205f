"""The commented scenario that `tcpsbed init` writes."""

from __future__ import annotations

from importlib import resources


def init_template() -> str:
    """A scenario that runs as it is and says in comments what else is possible."""
    return resources.files("tcpsbed.config").joinpath("template.toml").read_text(encoding="utf-8")
