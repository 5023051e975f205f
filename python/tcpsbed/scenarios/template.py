"""The commented scenario that `tcpsbed init` writes."""

from __future__ import annotations

from importlib import resources


def init_template() -> str:
    """A scenario that runs as it is, with alternatives in comments."""
    return resources.files("tcpsbed.scenarios").joinpath("template.toml").read_text(encoding="utf-8")
