"""Operators' devices, as hooks that a scenario names: one file each, one line in `DEVICES` (docs/devices.md).

No device was at hand: each is tested against recorded reports or a server of its published protocol, none with hardware.
"""

from __future__ import annotations

DEVICES: dict[str, tuple[str, str]] = {
    "evdev": ("tcpsbed.devices.evdev", "Evdev"),
    "spacemouse": ("tcpsbed.devices.spacemouse", "SpaceMouse"),
    "inverse3": ("tcpsbed.devices.inverse3", "Inverse3"),
    "inverse3_force": ("tcpsbed.devices.inverse3", "Inverse3Force"),
}
"""Module and class of each device, by the name that scenarios use."""
