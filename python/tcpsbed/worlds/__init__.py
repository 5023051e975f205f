"""Worlds: the same scenario in virtual time and on the machine's clock."""

from tcpsbed.worlds.folder import run

__all__ = ["run"]
