"""How long users of the fleet page wait for a list of a large fleet, in a real browser, beside the answer of the REST API alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from ...sandbox import browser as browsers
from ..fleet_home import FleetApi
from .event_rows import percentile
from .timing import Row, at_most, timed

LOADS, FILTERS = 10, 10
GOAL_SECONDS = 1.0  # above the answer of the API
# When the first row was painted: the frame after the one that it was in the document for.
FIRST_ROW = """
new MutationObserver((_changes, observer) => {
  if (!document.querySelector("tbody tr[data-id]")) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.firstRow = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""
PAINTED = (
    "() => new Promise((resolve) => { const check = () => window.firstRow ? resolve(window.firstRow) : setTimeout(check, 5); check(); })"
)
# From a key in the field for names until all rows are of the filter, and painted.
FILTER = """
(text) => new Promise((resolve) => {
  const input = document.querySelector("input[name=q]");
  const began = performance.now();
  const check = () => {
    const names = [...document.querySelectorAll("tbody th a")].map((each) => each.textContent);
    if (names.length && names.every((each) => each.includes(text))) requestAnimationFrame(() => resolve(performance.now() - began));
    else requestAnimationFrame(check);
  };
  input.value = text;
  input.dispatchEvent(new Event("input"));
  check();
})
"""


def page_rows(api: FleetApi, token: str, get: Callable[[str], Any], clusters: int) -> Iterator[Row]:
    """`get` sends a request to the API with the same token."""
    if reason := browsers.missing():
        yield Row("first paint of a list on the fleet page", f"not measured: {reason}")
        return
    with browsers.running_browser() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "/clusters?" in request.url else None)
        page.goto(api.address)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in with the token").click()
        page.get_by_role("heading", name="Overview").wait_for()
        page.goto(f"{api.address}#/clusters")
        page.locator("tbody tr").first.wait_for()
        page.add_init_script(FIRST_ROW)
        painted, filtered = _loads(page), _filters(page)
        own = {what: _own(get, asked, what) for what in ("", "filter=")}
    for what, taken, alone in (("first paint of a list", painted, own[""]), ("a filter of a list", filtered, own["filter="])):
        slowest, answer = percentile(taken, 99), percentile(alone, 50)
        goal = at_most(slowest - answer, GOAL_SECONDS, "s above it")
        title = f"{what} on the fleet page with {clusters} clusters, slowest of {len(taken)}"
        yield Row(title, f"{slowest * 1000:.0f} ms", f"REST API alone: {answer * 1000:.0f} ms", goal=goal)


def _loads(page: Any) -> list[float]:
    taken = []
    with timed(f"{LOADS} loads of the list"):
        for _load in range(LOADS):
            page.reload()
            taken.append(page.evaluate(PAINTED) / 1000)
    return sorted(taken)


def _filters(page: Any) -> list[float]:
    with timed(f"{FILTERS} filters of the list"):
        return sorted(page.evaluate(FILTER, f"-{number}7") / 1000 for number in range(1, FILTERS + 1))


def _own(get: Callable[[str], Any], asked: list[str], what: str) -> list[float]:
    """The seconds of the same request without the page."""
    address = next(each for each in reversed(asked) if "limit=50" in each and what in each)
    path, taken = f"/admin/clusters?{address.partition('?')[2]}", []
    for _request in range(LOADS):
        began = time.monotonic()
        get(path)
        taken.append(time.monotonic() - began)
    return sorted(taken)
