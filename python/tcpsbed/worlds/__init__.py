"""Worlds: the same scenario in virtual time, and on the machine's clock in many places and over many networks."""

from tcpsbed.worlds.folder import record, run
from tcpsbed.worlds.registry import check, named, names, require
from tcpsbed.worlds.steering import Steering

__all__ = ["Steering", "check", "named", "names", "record", "require", "run"]
