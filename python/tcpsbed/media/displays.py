"""Displays: sinks of frames.

| `display` | what it is |
|---|---|
| `"none"` | nobody; what is measured is measured all the same |
| `"window"` | a window on this machine (tkinter) |
| `"console"` | the browser console of `tcpsbed console` |
| `module:Class` | the user's: `show(frame, t_ns, index)` |
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tcpsbed import hooks
from tcpsbed.errors import HookError
from tcpsbed.media.packages import need

Frame = NDArray[np.uint8]


class Display(Protocol):
    """Something that shows frames."""

    def show(self, frame: Frame, t_ns: int, index: int) -> None:
        """Shows a frame."""
        ...


def open_display(name: str, width: int, height: int, stereo: bool = False) -> Display | None:
    """The display that a scenario names; `width` is that of the whole frame, of both eyes with `stereo`.

    Raises
    ------
    HookError
        If there is none.
    """
    if name == "none":
        return None
    if name == "window":
        return Window(width, height)
    if name == "console":
        from tcpsbed.media.line import Screen

        return Screen(stereo)
    module, _, symbol = name.rpartition(":")
    shown = hooks.find(module, symbol)(width=width, height=height)
    if not callable(getattr(shown, "show", None)):
        raise HookError(f"display {name}: found no show(frame, t_ns, index)", allowed="an object that has it")
    made: Display = shown
    return made


class Window:
    """A window of tkinter, opened by the thread that shows."""

    def __init__(self, width: int, height: int) -> None:
        need("tkinter", 'display "window"', "media")
        if not os.environ.get("DISPLAY"):
            raise HookError(
                'display "window": found no screen (DISPLAY is not set)', allowed='"none", "console"'
            )
        self.size = (width, height)
        self.root: Any = None

    def _opened(self) -> Any:
        import tkinter

        try:
            self.root = tkinter.Tk()
        except tkinter.TclError as error:
            raise HookError(f'display "window": {error}', allowed='"none", "console"') from None
        self.root.title("tcpsbed")
        self.label = tkinter.Label(self.root, width=self.size[0], height=self.size[1])
        self.label.pack()
        return tkinter

    def show(self, frame: Frame, t_ns: int, index: int) -> None:
        """Shows a frame."""
        if self.root is None:
            self._opened()
        import tkinter

        head = f"P6 {frame.shape[1]} {frame.shape[0]} 255 ".encode()
        image = tkinter.PhotoImage(data=head + frame.tobytes(), format="ppm", master=self.root)
        self.label.configure(image=image)
        self.kept = image
        self.root.update()
