"""Pictures of a robot at a rate, drawn in a process of their own so that no loop waits for them.

```text
robot ── state ──► cell ──► renderer: draws every period ── pictures in turn ──► reader: (t_ns, picture)
```
A robot that can be drawn has ``show(state)`` and ``render(camera, width, height)``; it publishes its state in a cell
(parameter `publish`). In virtual time the robot's own ``render`` is called instead, at a cost that the scenario names.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tcpsbed import hooks
from tcpsbed.door import Param
from tcpsbed.errors import HookError, ProcessDied, TcpsbedError
from tcpsbed.processes import PYTHON, end_with_parent, how_ended
from tcpsbed.robots import ROBOTS
from tcpsbed.robots.cell import Cell, Followed
from tcpsbed.robots.host import own_line, tell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Picture = NDArray[np.uint8]

RING = 4
"""Pictures that are kept: a reader has as many periods less one to take each."""
READY_S = 50.0
"""Longest time that the first picture may take."""
ROBOT_S = 20.0
"""Longest time that a flow's camera waits for its robot, which another loop or process may still be loading."""
_DRAWN = {
    "robot": Param("text", doc="the robot, as `run` names it"),
    "params": Param("object", default="{}", doc="its parameters, without `publish`"),
    "state": Param("text", doc="the file that it publishes its state in"),
    "look": Param(
        "text", default=None, doc="the file that a neck publishes in, if a head steers the cameras"
    ),
    "cameras": Param({"list": "text"}, default=None, doc="one camera, or the two of a stereo pair"),
}
"""What is drawn, in a scenario."""


class CameraSource:
    """An iterator over (t_ns, picture): the newest picture with the time of the state that it shows.

    Parameters
    ----------
    robot
        `module:Class`, or a name of `tcpsbed.robots.ROBOTS`.
    params
        Its parameters, without `publish`.
    state
        The file that the running robot publishes its state in.
    look
        The file that the hook `tcpsbed.robots.neck:Neck` publishes in, where a head steers the cameras; until it is
        there, they are where the model has them.
    cameras
        One camera, or the two of a stereo pair: then pictures lie side by side, left first.
    width, height
        Size of one camera's picture in pixels.
    rate_hz
        Frame rate; frames that cannot be drawn in time are skipped. None: a frame whenever one is asked for.
    wait_s
        Longest time to wait until the robot has made that file.

    Raises
    ------
    HookError
        If the robot, its camera or what draws is missing; names the remedy.
    """

    params: ClassVar[dict[str, Param]] = _DRAWN | {
        "rate_hz": Param("number", 0.001, 1000.0, "30", "frame rate"),
        "wait_s": Param("number", 0.0, READY_S, "0", "longest time to wait for that file"),
    }

    def __init__(
        self,
        robot: str,
        params: dict[str, Any],
        state: str,
        *,
        look: str | None = None,
        cameras: tuple[str, ...] = ("left",),
        width: int = 640,
        height: int = 480,
        rate_hz: float | None = 30.0,
        wait_s: float = 0.0,
    ) -> None:
        if not cameras:
            raise HookError("found no camera", key="cameras", allowed='names of cameras, such as ["left"]')
        self.width, self.height = width * len(cameras), height
        self._bytes, self._asks = self.width * height * 3, rate_hz is None
        self._unread = b""
        pictures = os.memfd_create("tcpsbed-pictures")
        try:
            os.ftruncate(pictures, RING * self._bytes)
            self._memory = mmap.mmap(pictures, RING * self._bytes)
            self._child = subprocess.Popen(
                [*PYTHON, "-m", "tcpsbed.robots.camera", str(os.getpid()), str(pictures)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(pictures,),
                text=True,
                errors="replace",
            )
        finally:
            os.close(pictures)
        asked = {
            "robot": robot,
            "params": params,
            "state": state,
            "look": look,
            "cameras": list(cameras),
            "width": width,
            "height": height,
            "rate_hz": rate_hz,
            "wait_s": wait_s,
        }
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(json.dumps(asked) + "\n")
            self._child.stdin.flush()
        said = self._hear(READY_S)
        if "error" in said:
            self.close()
            raise HookError(said["error"])

    def __iter__(self) -> Iterator[tuple[int, Picture]]:
        return self

    def __next__(self) -> tuple[int, Picture]:
        if self._asks and self._child.stdin is not None:
            with suppress(BrokenPipeError):
                self._child.stdin.write("next\n")
                self._child.stdin.flush()
        said = self._hear(None)
        while not self._asks and self._more():
            newer = self._hear(None)
            if "t_ns" not in newer:  # it ended: the next call says why
                self._unread = json.dumps(newer).encode() + b"\n" + self._unread
                break
            said = newer
        if "t_ns" not in said:
            raise StopIteration(said["error"])  # why, for whoever reports it
        start = said["picture"] % RING * self._bytes
        flat = np.frombuffer(self._memory, np.uint8, self._bytes, start).copy()
        return said["t_ns"], flat.reshape(self.height, self.width, 3)

    def close(self) -> None:
        """Ends the renderer."""
        if self._child.stdin is not None and not self._child.stdin.closed:
            with suppress(BrokenPipeError):
                self._child.stdin.close()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _hear(self, seconds: float | None) -> dict[str, Any]:
        assert self._child.stdout is not None
        while b"\n" not in self._unread:
            if not select.select([self._child.stdout], [], [], seconds)[0]:
                return {"error": f"the drawing process did not answer for {seconds:g} s"}
            came = os.read(self._child.stdout.fileno(), 1 << 16)
            if not came:
                return {"error": f"the drawing process ended {how_ended(self._child.wait())}"}
            self._unread += came
        line, _, self._unread = self._unread.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def _more(self) -> bool:
        """Whether there is another line already."""
        assert self._child.stdout is not None
        return b"\n" in self._unread or bool(select.select([self._child.stdout], [], [], 0)[0])


class RobotCamera:
    """A camera for a flow of pictures (docs/media.md): the current view of a robot's cameras.

    Parameters
    ----------
    width, height, stereo
        As the flow says.
    robot, params, state, look
        As `CameraSource` takes them.
    cameras
        The camera, or the two of a pair; absent: `left`, or `left` and `right`.
    """

    params: ClassVar[dict[str, Param]] = _DRAWN

    def __init__(
        self,
        width: int,
        height: int,
        stereo: bool,
        robot: str,
        state: str,
        params: dict[str, Any] | None = None,
        cameras: list[str] | None = None,
        look: str | None = None,
    ) -> None:
        eyes = tuple((["left", "right"] if stereo else ["left"]) if cameras is None else cameras)
        self.source = CameraSource(
            robot,
            params or {},
            state,
            look=look,
            cameras=eyes,
            width=width,
            height=height,
            rate_hz=None,
            wait_s=ROBOT_S,
        )

    def frame(self, t_ns: int, index: int) -> Picture:
        """The newest state, drawn."""
        try:
            return next(self.source)[1]
        except StopIteration as end:
            raise ProcessDied(f"no more pictures: {end.value}") from None


def draw(robot: Any, cameras: list[str], width: int, height: int) -> Picture:
    """The pictures of several cameras side by side: height x (cameras * width) x 3 bytes."""
    return np.concatenate([robot.render(camera, width, height) for camera in cameras], axis=1)


def serve(robot: Any, asked: dict[str, Any], pictures: mmap.mmap, line: int) -> None:
    """Draws the newest state every period, or whenever a line asks for it, until standard input ends."""
    robot_state = Followed(asked["state"])
    head = None
    period_ns = round(1e9 / asked["rate_hz"]) if asked["rate_hz"] else None
    due, number, t_ns = time.monotonic_ns(), 0, 0
    while _go_on(period_ns):
        if head is None and asked["look"] and Path(asked["look"]).exists():
            head = Followed(asked["look"])
        newest, look = robot_state.read(), head.read() if head else None
        if newest is not None:
            _, t_ns, state = newest
            robot.show(state)
        if look is not None:
            robot.look(asked["cameras"], look[2])
        if newest is not None or period_ns is None:
            picture = draw(robot, asked["cameras"], asked["width"], asked["height"])
            start = number % RING * picture.size
            pictures[start : start + picture.size] = picture.tobytes()
            tell(line, picture=number, t_ns=t_ns)
            number += 1
        if period_ns is not None:
            now = time.monotonic_ns()
            due += max((now - due) // period_ns + 1, 1) * period_ns
            time.sleep(max(due - now, 0) / 1e9)


def _await(state: str, wait_s: float) -> None:
    """Waits for the file of a robot; whether it came is seen when it is opened."""
    limit = time.monotonic() + wait_s
    while not Path(state).exists() and time.monotonic() < limit:
        time.sleep(0.05)


def _go_on(period_ns: int | None) -> bool:
    """Whether there is a picture to draw; one that is asked for is waited for."""
    if period_ns is None:
        return bool(sys.stdin.readline())
    return not select.select([sys.stdin], [], [], 0)[0]


def _named(text: str) -> tuple[str, str]:
    """Module and class of a robot."""
    module, _, name = text.rpartition(":")
    if module:
        return module, name
    if text not in ROBOTS:
        raise HookError(
            f'found "{text}", which is not a robot',
            allowed=f"{', '.join(ROBOTS)}, or code such as ./mine.py:Mine",
        )
    return ROBOTS[text]


def _prepared(asked: dict[str, Any]) -> Any:
    """The robot, once it can be drawn and publishes its state."""
    robot = hooks.make(*_named(asked["robot"]), asked["params"])
    if not (hasattr(robot, "show") and hasattr(robot, "render")):
        raise HookError(
            f"robot {asked['robot']} cannot be drawn", allowed="a robot with show(state) and render"
        )
    if asked["look"] and not hasattr(robot, "look"):
        raise HookError(
            f"robot {asked['robot']} has no cameras that turn",
            allowed="no `look`, or a robot with look(cameras, look), as those in MuJoCo have",
        )
    draw(robot, asked["cameras"], asked["width"], asked["height"])
    if asked["look"] and not Path(asked["look"]).parent.is_dir():
        raise HookError(f"{asked['look']} is in no folder", allowed="the file that a neck publishes in")
    _await(asked["state"], asked["wait_s"])
    Cell.open(asked["state"])
    return robot


def main() -> None:
    """The process that draws: what and of whom in a line on standard input; its parent and its memory by the arguments."""
    end_with_parent(int(sys.argv[1]))
    line = own_line()
    asked = json.loads(sys.stdin.readline())
    os.nice(5)  # loops come first
    try:
        try:
            robot = _prepared(asked)
        except TcpsbedError:
            raise
        except Exception as error:  # a robot of the user's may fail in any way
            raise HookError(f"robot {asked['robot']} cannot be drawn: {hooks.told(error)}") from error
        tell(line, ready=True)
        size = len(asked["cameras"]) * asked["width"] * asked["height"] * 3
        serve(robot, asked, mmap.mmap(int(sys.argv[2]), RING * size), line)
    except TcpsbedError as error:  # also a state whose folder went at the end of what published it
        tell(line, error=str(error))


if __name__ == "__main__":
    main()
