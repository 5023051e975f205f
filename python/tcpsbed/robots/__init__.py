"""Robots in Python that a scenario names like built-in ones: one file each, one line in `ROBOTS`.

A robot is an object with ``step(t_ns, command, sense) -> values written``; what it needs is imported when one is made.
"""

from __future__ import annotations

ROBOTS: dict[str, tuple[str, str]] = {
    "mujoco-arm": ("tcpsbed.robots.arm", "Arm"),
    "mujoco-conveyor": ("tcpsbed.robots.conveyor", "Conveyor"),
    "mujoco-model": ("tcpsbed.robots.model", "Model"),
    "coppeliasim": ("tcpsbed.robots.coppelia", "CoppeliaSim"),
    "microscope": ("tcpsbed.robots.microscope", "Microscope"),
    "pottery": ("tcpsbed.robots.pottery", "Pottery"),
}
"""Module and class of each robot, by the name that scenarios use."""

OUTPUTS = ("archive", "publish", "speaker")
"""Parameters, of robots and of sound, that name a file which a run writes."""
MEMORY = "memory:"
"""Begins a name in the shared memory of a run (`tcpsbed.worlds.memory`), for a file that two of its parts share."""
