"""A code in the picture: its capture time and number, drawn into it and read from the shown picture.

```text
 80 bits in 2 rows of 40 blocks along the upper edge, white for 1, most significant first
 | time in microseconds, 40 | number, 24 | CRC-16 of these 8 bytes |
```
The latency from glass to glass is the time of showing minus the time read; nothing on the way is assumed. Blocks are as
wide as the picture allows, so that the code survives what coders do to details; what they destroy all the same fails
the checksum and counts as unread.
"""

from __future__ import annotations

import binascii

import numpy as np
from numpy.typing import NDArray

COLUMNS, ROWS = 40, 2
TIME_BITS, NUMBER_BITS = 40, 24
LEAST_BLOCK = 4
"""Picture elements of the side of the smallest block that coders leave readable."""


def block(width: int) -> int:
    """Side of a block in a picture that wide; 0 where there is no room for the code."""
    side = width // COLUMNS
    return side if side >= LEAST_BLOCK else 0


def draw(frame: NDArray[np.uint8], t_ns: int, number: int) -> None:
    """Draws time and number into a frame of shape (height, width, 3), in place."""
    side = block(frame.shape[1])
    if side == 0:
        return
    content = _content(t_ns // 1000, number)
    bits = np.unpackbits(np.frombuffer(content, np.uint8)).reshape(ROWS, COLUMNS)
    frame[: ROWS * side, : COLUMNS * side] = np.kron(bits * np.uint8(255), np.ones((side, side), np.uint8))[
        ..., None
    ]


def read(frame: NDArray[np.uint8]) -> tuple[int, int] | None:
    """Time in nanoseconds (whole microseconds) and number in a frame, or none where they cannot be read."""
    side = block(frame.shape[1])
    if side == 0 or frame.shape[0] < ROWS * side:
        return None
    part = frame[: ROWS * side, : COLUMNS * side].mean(axis=2)
    blocks = part.reshape(ROWS, side, COLUMNS, side)
    margin = side // 4
    middle = blocks[:, margin : side - margin, :, margin : side - margin].mean(axis=(1, 3))
    content = np.packbits((middle > 127.5).ravel()).tobytes()
    if binascii.crc_hqx(content[:8], 0xFFFF) != int.from_bytes(content[8:], "big"):
        return None
    whole = int.from_bytes(content[:8], "big")
    return (whole >> NUMBER_BITS) * 1000, whole & ((1 << NUMBER_BITS) - 1)


def _content(t_us: int, number: int) -> bytes:
    time = t_us & ((1 << TIME_BITS) - 1)
    content = (time << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1)).to_bytes(8, "big")
    return content + binascii.crc_hqx(content, 0xFFFF).to_bytes(2, "big")
