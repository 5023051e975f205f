"""A mark in sound: a chirp added to the microphone's sound at whole seconds, and detected where it is heard.

```text
mouth   ────┤chirp├───────  the second that begins where it begins, by the clock of the microphone
ear     ──────────┤chirp├─  where it begins in what is played: the delay is between the two
```
It is found by its normalised correlation, to a sample. Delays of a second and more are taken for what is left of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.int16]
Floats = NDArray[np.float64]

PERIOD_NS = 1_000_000_000
"""Time between two marks, and the longest delay that can be told."""
SPAN_S = 0.02
LOUDNESS = 12_000.0
LEAST = 0.8
"""Correlation, 1 for the mark itself, from which on it is taken for one; of half a mark beside silence it is 0.71."""
GUARD_S = 0.002
"""Around a mark its correlation swings with the chirp: this far, the largest counts."""


def chirp(sampling_hz: float) -> Floats:
    """The mark: 20 ms that rise through a band which codecs of speech keep, softly begun and ended."""
    low_hz, high_hz = min(0.05 * sampling_hz, 1000.0), min(0.2 * sampling_hz, 3400.0)
    t_s = np.arange(round(SPAN_S * sampling_hz)) / sampling_hz
    turns = low_hz * t_s + 0.5 * (high_hz - low_hz) / SPAN_S * t_s**2
    mark: Floats = LOUDNESS * np.hanning(len(t_s)) * np.sin(2.0 * np.pi * turns)
    return mark


class Mouth:
    """Adds the mark to frames; a frame ends at its capture time.

    Parameters
    ----------
    sampling_hz
        Samples a second.
    """

    def __init__(self, sampling_hz: float) -> None:
        self.hz, self.mark = sampling_hz, chirp(sampling_hz).astype(np.int16)
        self.left = self.mark[:0]
        self.last_ns: int | None = None

    def lay(self, samples: Samples, t_ns: int) -> Samples:
        """The samples (n, channels) that were taken until `t_ns`, with what of a mark falls into them."""
        n, start = len(samples), 0
        due_ns = t_ns // PERIOD_NS * PERIOD_NS
        if self.last_ns is not None and due_ns > self.last_ns:
            start = min(max(n - round((t_ns - due_ns) * self.hz / 1e9), 0), n - 1)
            self.left = self.mark
        self.last_ns = t_ns
        part, self.left = self.left[: n - start], self.left[n - start :]
        if len(part) == 0:
            return samples
        marked = samples.copy()
        marked[start : start + len(part)] = part[:, None]
        return marked


class Ear:
    """Finds the mark in frames that are heard one after the other.

    Parameters
    ----------
    sampling_hz
        Samples a second.
    """

    def __init__(self, sampling_hz: float) -> None:
        self.hz, self.mark = sampling_hz, chirp(sampling_hz)
        self.guard = max(round(GUARD_S * sampling_hz), 1)
        self.before = np.zeros(len(self.mark) - 1 + 2 * self.guard)
        self.next: int | None = None

    def hear(self, samples: Samples, t_ns: int, index: int) -> float | None:
        """When a mark that is found with this frame was laid, moved so that its age now is the delay of the sound.

        Parameters
        ----------
        samples
            The frame, shape (n, channels).
        t_ns
            When its first sample is heard.
        index
            Its number: behind a gap nothing is known of what came before.

        Returns
        -------
        float or None
            Nanoseconds; None without a mark.
        """
        if index != self.next:
            self.before[:] = 0.0
        self.next = index + 1
        heard = np.concatenate((self.before, samples[:, 0].astype(np.float64)))
        self.before = heard[len(heard) - len(self.before) :]
        likeness = self._likeness(heard)
        best = int(np.argmax(likeness))
        if likeness[best] < LEAST or not self.guard <= best < len(likeness) - self.guard:
            return None  # or its peak is with the frame before or the next one
        offset_ns = (best - len(self.before)) / self.hz * 1e9
        laid_ns = (t_ns + offset_ns) // PERIOD_NS * PERIOD_NS
        return laid_ns - offset_ns

    def _likeness(self, heard: Floats) -> Floats:
        """Correlation with the mark wherever it fits, 1 where it is all that is heard."""
        n = len(self.mark)
        energy = np.cumsum(np.concatenate(([0.0], heard * heard)))
        energy = energy[n:] - energy[:-n]
        product = np.correlate(heard, self.mark, "valid")
        found: Floats = product / np.sqrt(np.maximum(energy, 1.0) * float(self.mark @ self.mark))
        return found
