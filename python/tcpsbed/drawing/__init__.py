"""Figures: styles, shapes, and files with their origin in them.

```text
numbers ─► shapes on a canvas in a style ─► saved as PDF, SVG, PGF or PNG, the same bytes each time
```
"""

from __future__ import annotations

from tcpsbed.drawing.files import ENDINGS, Origin, drawable, saved
from tcpsbed.drawing.style import STYLES, Style, canvas, keyed, styled

__all__ = ["ENDINGS", "STYLES", "Origin", "Style", "canvas", "drawable", "keyed", "saved", "styled"]
