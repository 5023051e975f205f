"""The order of conditions for each subject: random, and balanced over subjects by Williams squares.

```text
4 conditions   0 1 3 2 │ 1 2 0 3 │ 2 3 1 0 │ 3 0 2 1      each condition once in each place,
odd numbers    the same rows and their mirror images      and once right behind each other one
```
Subjects come in blocks of as many as the square has rows; each block draws who gets which row, and which condition is
which number.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


# [Williams 1949]
def square(size: int) -> list[list[int]]:
    """The rows of a Williams square of so many conditions: `size` of them, twice as many for an odd size."""
    first = [0]
    for step in range(1, size):
        first.append((step + 1) // 2 if step % 2 else size - step // 2)
    rows = [[(number + row) % size for number in first] for row in range(size)]
    return rows + [row[::-1] for row in rows] if size % 2 else rows


def order(conditions: Sequence[str], subject: int, seed: int) -> list[str]:
    """The conditions in the order in which a subject meets them.

    Parameters
    ----------
    conditions
        Their names; the order of the names changes nothing.
    subject
        From 1 on.
    seed
        That of the study.
    """
    names, rows = sorted(conditions), square(len(conditions))
    block, place = divmod(subject - 1, len(rows))
    drawn = random.Random(f"{seed}/{block}")
    drawn.shuffle(names)
    drawn.shuffle(rows)
    return [names[number] for number in rows[place]]
