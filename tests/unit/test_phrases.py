"""Phrases that readers had to read twice stay away from pages, messages and comments; the field has a term for each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

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
    "that are not ours": "your own programs",
    "programs of others": "other programs",
    "switches of others": "Mininet's switches",
    "bit/s of others": "cross traffic",
    "packet of others": "cross traffic",
    "ms of others": "cross traffic",
    "segments of others": "segments of another connection",
    "delay bears": "tolerates",
    "loop bears": "tolerates",
    "found nothing; allowed": "what is missing, with an example",
}
"""What is refused, and what to write in its place."""
NOT_TEXT = {".png", ".wav", ".npy", ".parquet", ".h264", ".mjpeg"}


def texts() -> dict[str, str]:
    """The text files of the tree by name, without other people's, this one and what has been released."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8", errors="replace")
        for file in files
        if file.is_file() and not file.is_symlink() and file.suffix not in NOT_TEXT
        if not {"vendor", "corpus", "CHANGELOG.md", Path(__file__).name} & set(file.relative_to(ROOT).parts)
    }


def words(text: str) -> str:
    """A text in small letters, its line ends with quotes and marks of comments as one space."""
    return re.sub(r"[\"'\s]*\n[\s/!#*]*(?:f?[\"'])?|\s+", " ", text).lower()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the list of files that git has")
def test_pages_messages_and_comments_use_the_terms_of_the_field() -> None:
    read = texts()
    assert len(read) > 1500
    found = [
        f"{name}: {phrase!r}; write {term!r}"
        for name, text in read.items()
        for text in [words(text)]
        for phrase, term in TERMS.items()
        if phrase in text
    ]
    assert found == []


def test_a_phrase_is_found_across_lines() -> None:
    assert "under way" in words('what is "\n    "under\n    /// way')
