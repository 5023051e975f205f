"""Pre-shared keys of a run on sockets: each node gets those of its channels, with the message that prepares it.

They are in no plan, results folder or command line. To another host they travel as all messages to its nodes do: by ssh.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcpsbed import keyfile

ASIDES = "asides"
"""What stands for the key of answers of echoes and clock exchanges (`crates/tcps-run/src/real/secrets.rs`)."""


def made(plan: Mapping[str, Any]) -> dict[str, str]:
    """The keys of a run by the number of their channel, or `ASIDES`; none where nothing is secured.

    Raises
    ------
    DataError
        A key file is not there any more, or is not what it was when the scenario was checked.
    """
    secured = {number: c["security"] for number, c in enumerate(plan["channels"]) if "security" in c}
    keys = {str(number): _key(security) for number, security in secured.items()}
    return keys | {ASIDES: keyfile.fresh()} if keys else {}


def _key(security: Mapping[str, Any]) -> str:
    """A key of this run alone; with a key file it follows from that, too."""
    file = security.get("key_file")
    fresh = keyfile.fresh()
    if file is None:
        return fresh
    return hmac.new(bytes.fromhex(keyfile.read(Path(file))), bytes.fromhex(fresh), "sha256").hexdigest()


def of_node(plan: Mapping[str, Any], keys: Mapping[str, str], node: int) -> dict[str, str]:
    """Those of them that a node needs."""
    here = {str(n) for n, channel in enumerate(plan["channels"]) if node in (channel["a"], channel["b"])}
    return {whose: key for whose, key in keys.items() if whose in here | {ASIDES}}
