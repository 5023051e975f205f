"""Phrases that readers had to read twice stay away from pages, messages and comments; the field has a term for each."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TERMS = {
    "under way": "in flight",
    "whole way": "end to end",
    "way home": "return path",
    "stood still": "stalled",
    "stands still": "stalls",
    "to stand still": "to stall",
    "ticks left out": "skipped ticks",
    "assumed free": "zero-cost",
    "later than set": "emulation error",
    "what has come": "what arrived",
    "what did not come": "what was lost",
    "pictures a second": "frame rate",
    "lets the interpreter go": "releases the GIL",
    "who repeats": "a repeater",
    "queue that a packet met": "residual queueing delay",
    "was looked at": "was sampled, or checked",
    "were looked at": "were sampled, or checked",
    "two looks at": "polling interval",
    "found nothing; allowed": "what is missing, with an example",
}
"""What is refused, and what to write in its place."""
FILES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *(
        file
        for room in ("python", "crates")
        for end in ("py", "rs", "js", "html")
        for file in ROOT.glob(f"{room}/**/*.{end}")
    ),
]


def words(text: str) -> str:
    """A text in small letters, its line ends with quotes and marks of comments as one space."""
    return re.sub(r"[\"'\s]*\n[\s/!#*]*(?:f?[\"'])?|\s+", " ", text).lower()


def test_pages_messages_and_comments_use_the_terms_of_the_field() -> None:
    assert len(FILES) > 500
    found = [
        f"{file.relative_to(ROOT)}: {phrase!r}; write {term!r}"
        for file in FILES
        for text in [words(file.read_text(encoding="utf-8"))]
        for phrase, term in TERMS.items()
        if phrase in text
    ]
    assert found == []


def test_a_phrase_is_found_across_lines() -> None:
    assert "under way" in words('what is "\n    "under\n    /// way')
