"""Chromium for tests of pages: `browser` for a module, `opened` for pages of viewers of their own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
LOCAL = ("http://127.0.0.1", "https://127.0.0.1", "file:", "blob:", "data:")
"""How addresses begin that stay on this machine."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window; skipped where chromium or the package playwright is missing."""
    if BROWSER is None:
        pytest.skip("needs chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield made
        made.close()


class Wrong(list[str]):
    """What went wrong in pages: exceptions, requests that leave the machine, words on the console."""

    def watch(self, page: Any) -> None:
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(LOCAL) else self.append(asked.url),
        )
        page.on("console", lambda said: self.append(said.text) if said.type == "error" else None)


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page of a viewer of its own; nothing may go wrong in it."""
    contexts, wrong = [], Wrong()

    def open_page(address: str, width: int = 1600, **keys: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 1000}, **keys))
        page = contexts[-1].new_page()
        wrong.watch(page)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def becomes(page: Any, holds: str, seconds: float = 20) -> None:
    """Waits until an expression is true; `wait_for_function` is what the page's own policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(holds):
        if time.monotonic() > end:
            print(page.inner_text("body"))  # not in the message: the same words each time are no load
            raise AssertionError(holds)
        time.sleep(0.05)
