"""A run in a cell of a notebook: what it says of itself, and where the time went."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcpsbed import palette
from tcpsbed.views import flows, markup
from tcpsbed.views.folder import RunFolder
from tcpsbed.views.markup import Html

_STYLE = (
    "<style>.tcpsbed .lane { width: 20em; height: 0.8em } "
    f".tcpsbed .component {{ fill: {palette.COMPONENT} }} .tcpsbed .link {{ fill: {palette.LINK} }} "
    ".tcpsbed td.number { text-align: right } .tcpsbed td.words { text-align: left }</style>"
)
_TERM = re.compile(r'<a href="#term-[^"]*">(.*?)</a>')
"""A link to a term, which a page has at its end, and a cell has not."""


def cell(run: RunFolder, said: Sequence[str]) -> Html:
    """The first sentence, a list of the others, and a waterfall of each flow."""
    head, *rest = said
    drawn = _TERM.sub(r"\1", flows.waterfalls(run))
    return Html(
        f'{_STYLE}<div class="tcpsbed"><b>{markup.escaped(head)}</b>{markup.listing(rest)}{drawn}</div>'
    )
