"""What scripts that draw for the documentation share: colours, figures of 1600 pixels' width, light on robots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from PIL import Image

import tcpsbed
from tcpsbed.palette import PALETTE

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 1600
"""Pixels; a page shows half of them."""


@dataclass(frozen=True)
class Theme:
    """Colours of the background and of what stands on it."""

    suffix: str
    paper: str
    ink: str
    soft: str
    line: str
    propagation: str
    curves: tuple[str, ...]


LIGHT = Theme("", "#ffffff", "#1b1f24", "#5b6570", "#dfe3e8", "#b8c1ca", ("#D55E00", "#0072B2", "#009E73"))
DARK = Theme(
    "-dark", "#0d1117", "#e6edf3", "#9aa5b1", "#2b333d", "#5b6773", ("#F0813A", "#56B4E9", "#2FBF97")
)


BOTH = (LIGHT, DARK)
FAR = (1.1, 1.7)
"""Where the floor ends before cameras that stand back, in m."""


def drawn(
    name: str,
    height: int,
    draw: Callable[[Any, Theme], None],
    themes: tuple[Theme, ...] = BOTH,
    colors: int | None = 256,
) -> None:
    """A figure in these themes, 1600 pixels wide, with letters that can be read at half its size."""
    for theme in themes:
        style = {
            "font.size": 20,
            "axes.facecolor": theme.paper,
            "axes.edgecolor": theme.line,
            "axes.labelcolor": theme.soft,
            "axes.axisbelow": True,
            "axes.prop_cycle": pyplot.cycler(color=PALETTE),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": theme.line,
            "xtick.color": theme.soft,
            "ytick.color": theme.soft,
            "text.color": theme.ink,
            "lines.linewidth": 4,
            "figure.facecolor": theme.paper,
        }
        with pyplot.rc_context(style):
            paper = pyplot.figure(figsize=(WIDTH / 100, height / 100), dpi=100)
            draw(paper, theme)
            paper.canvas.draw()
            picture = Image.fromarray(np.asarray(paper.canvas.buffer_rgba())).convert("RGB")
            pyplot.close(paper)
        save(f"{name}{theme.suffix}", picture, colors)


def headed(paper: Any, theme: Theme, title: str, below: str) -> None:
    """Title and subtitle at the upper left corner."""
    height = paper.get_figheight() * 100
    paper.text(40 / WIDTH, 1 - 56 / height, title, size=27, weight="bold")
    paper.text(40 / WIDTH, 1 - 100 / height, below, size=19, color=theme.soft)


def run(scenario: str, folder: Path, *sets: str) -> Any:
    """A shipped scenario in virtual time."""
    return tcpsbed.run(ROOT / "scenarios" / f"{scenario}.toml", world="virtual", out=folder, set=list(sets))


def save(name: str, picture: Image.Image | np.ndarray, colors: int | None = 256) -> None:
    """Writes a picture into the documentation, by default with at most 256 colours."""
    picture = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    if colors:
        picture = picture.quantize(colors, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    picture.save(PICTURES / f"{name}.png", optimize=True)


def lit(
    robot: Any,
    camera: Any,
    size: tuple[int, int],
    theme: Theme = LIGHT,
    glass: Any = None,
    haze: tuple[float, float] = (0.65, 1.15),
) -> np.ndarray:
    """A robot with shadows before the paper's colour as a sky, and another of its model as blue glass.

    `camera` is a name, or azimuth, elevation and distance in degrees and metres; the floor ends in `haze` (m).
    """
    import mujoco

    scene = robot.scene
    model = scene.model
    model.vis.quality.offsamples, model.vis.quality.shadowsize = 8, 4096
    model.light_castshadow[:] = True
    wide = model.vis.global_
    wide.offwidth, wide.offheight = max(size[0], wide.offwidth), max(size[1], wide.offheight)
    eye = camera
    if not isinstance(camera, str):
        eye = mujoco.MjvCamera()
        eye.lookat[:] = (0.13, -0.06, 0.095)
        eye.azimuth, eye.elevation, eye.distance = camera
    with mujoco.Renderer(model, size[1], size[0]) as renderer:
        renderer.update_scene(scene.data, eye)
        shown, solid = renderer.scene, renderer.scene.ngeom
        if glass is not None:
            still = {scene.number("body", name) for name in ("base", "shoulder")}
            moving = mujoco.mjtCatBit.mjCAT_DYNAMIC
            mujoco.mjv_addGeoms(
                model, glass.scene.data, mujoco.MjvOption(), mujoco.MjvPerturb(), moving, shown
            )
            for geom in shown.geoms[solid : shown.ngeom]:
                geom.rgba[:] = (0.34, 0.71, 0.91, 0.0 if model.geom_bodyid[geom.objid] in still else 0.3)
        picture = renderer.render() & 0xFC  # fewer shades, a smaller file
        shown.ngeom = solid
        renderer.enable_depth_rendering()
        depth = renderer.render()
    far = np.clip((depth - haze[0]) / (haze[1] - haze[0]), 0, 1)[..., None]
    return np.asarray(picture * (1 - far) + 255 * np.array(to_rgb(theme.paper)) * far, dtype=np.uint8)
