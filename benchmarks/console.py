"""The web console before a large site: ``devstack/services.py run -- python -m benchmarks.console``.

Chromium, in which nothing else is open, shows the console of a site with ten thousand nodes of fake hardware. first
screens: processor time of the service and of the browser until Home and Fleet are shown, without anything in the
browser's cache. filter: from a key in the filter to the rows, beside the same list through the API. events: from the
request that changes a node to the row that shows it.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psutil
import requests
from playwright.sync_api import Page

from benchmarks import figures, processes, report, stock
from benchmarks.api import VERSION
from benchmarks.loads import Meter, Subject
from ingot.common import clock, states
from ingot.db.engine import Database
from tests.gate.console.browser import Browser

FIRST_SCREEN_S, FILTER_MS, EVENT_MS = 1.0, 150.0, 300.0
"""Limits: processor seconds until a first screen is shown; the 95th percentiles of the others."""

_FAILED, _HELD_BACK = 200, 100
"""Nodes that need an operator."""

_SETTLE_MS = 3000
"""What a browser does after its start belongs to no page."""

_PROGRAM = "chromium"
_COUNT, _FIRST_NAME, _FIRST_NOTE = ".page-head [role=status]", ".fleet-name", ".fleet-notes"
_FILTER = "[data-search]"
_BEGINNING = "rack"
"""What the names of all nodes begin with."""

_WITHOUT_NOTES = "state:active"
"""Nodes of which the list has nothing to say, so that what it says is of the event."""

# Resolves with the time at which the page shows certain texts: after the frame in which it does was drawn. Notes the
# time of the first key, too. Both are in milliseconds of the computer's clock. It fails with what is shown instead.
_WATCH = """(texts) => {
    const now = (at = performance.now()) => performance.timeOrigin + at;
    addEventListener("keydown", (event) => { window.pressedAt = now(event.timeStamp); }, { once: true, capture: true });
    const read = (selector) => document.querySelector(selector)?.textContent.trim();
    window.shownAt = new Promise((resolve, reject) => {
        const fail = () => reject(new Error(JSON.stringify(texts.map(([selector, text]) => [text, read(selector)]))));
        const timer = setTimeout(fail, 30_000);
        const look = () => {
            if (!texts.every(([selector, text]) => read(selector) === text)) return;
            clearTimeout(timer);
            observer.disconnect();
            requestAnimationFrame(() => setTimeout(() => resolve(now())));
        };
        const observer = new MutationObserver(look);
        observer.observe(document.body, { subtree: true, childList: true, characterData: true });
        look();
    });
}"""

Row = dict[str, Any]


class Api:
    """The API as a client uses it whose requests wait for their answers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.headers["X-OpenStack-Ironic-API-Version"] = VERSION

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        answer = self._session.request(method, self._url + path, json=body, params=query, timeout=60)
        answer.raise_for_status()
        return answer.json() if answer.content else None


class Screen(NamedTuple):
    """A page, and what it has when it is shown."""

    title: str
    path: str
    sign: str


SCREENS = (
    Screen("Home", "/", ".home-counts .counts"),
    Screen("Fleet", "/fleet", _FIRST_NAME),
)


def measure_first_screens(subject: Subject, times: int) -> Iterator[Row]:
    """Return what each page costs until it is shown, the middle of some times."""
    for screen in SCREENS:
        found = [_show(subject, screen) for _ in range(times + 1)][1:]  # the first one makes the service warm
        middle = {name: figures.percentile([row[name] for row in found], 0.5) for name in found[0]}
        whole = middle["service, s"] + middle["browser, s"]
        yield {"page": screen.title, **middle, "processor time, s": whole, **_judge(whole, FIRST_SCREEN_S)}


def _judge(value: float, limit: float) -> Row:
    return {"limit": limit, "reached": "yes" if value <= limit else "no"}


def _show(subject: Subject, screen: Screen) -> dict[str, float]:
    """Open a page in a new browser that runs already; return what that costs."""
    with Browser(subject.api.url) as browser:
        browser.page.goto("/v1")
        browser.page.wait_for_timeout(_SETTLE_MS)
        pids = _list_browsers()
        before = processes.cpu(pids)
        with Meter(subject) as meter:
            browser.open(screen.path)
            browser.page.locator(screen.sign).first.wait_for()
        return {
            "service, s": meter.server,
            "browser, s": processes.cpu_between(before, processes.cpu(pids)),
            "until it is shown, s": meter.wall,
        }


def _list_browsers() -> list[int]:
    """Return the first processes of the browsers that this one has started."""
    mine = psutil.Process().children(recursive=True)
    found = {one.pid: one.ppid() for one in mine if one.name() == _PROGRAM}
    return [pid for pid, parent in found.items() if parent not in found]


def watch(page: Page, *texts: tuple[str, str]) -> None:
    """Begin to wait until the page shows texts, each where a selector says."""
    page.evaluate(_WATCH, [list(pair) for pair in texts])


def read_shown(page: Page) -> float:
    """Return the milliseconds at which it did."""
    shown: float = page.evaluate("() => window.shownAt")
    return shown


def measure_filter(page: Page, api: Api, times: int) -> Iterator[Row]:
    """Return the times from a key in the filter to its rows, and those of the same list through the API."""
    total = api.call("GET", "/ingot/v1/fleet", limit=1)["total"]
    field = page.locator(_FILTER)
    keys: list[float] = []
    lists: list[float] = []
    for text, key in itertools.islice(_list_keys(api, total), times):
        if text == _BEGINNING:
            field.fill(text)
            page.wait_for_timeout(1000)
        began = time.perf_counter()
        expected = api.call("GET", "/ingot/v1/fleet", filter=text + key, sort="name", offset=0, limit=100)
        lists.append(time.perf_counter() - began)
        count = f"{expected['matching']:,} of {total:,}"
        watch(page, (_COUNT, count), (_FIRST_NAME, expected["nodes"][0]["name"]))
        page.keyboard.press(key)
        shown = read_shown(page)
        keys.append((shown - page.evaluate("() => window.pressedAt")) / 1e3)
    yield _row("from a key to its rows", keys, FILTER_MS)
    yield _row("the same list through the API", lists)


def _list_keys(api: Api, total: int) -> Iterator[tuple[str, str]]:
    """Yield what the filter has, and the key that is pressed: numbers of racks, each digit with other rows."""
    for offset in itertools.count(total // 7, total // 11):
        node = api.call("GET", "/ingot/v1/fleet", sort="name", offset=offset % total, limit=1)["nodes"][0]
        name = node["name"].partition("-")[0]
        for at in range(len(_BEGINNING), len(name)):
            yield name[:at], name[at]


def _row(what: str, seconds: Sequence[float], limit: float | None = None) -> Row:
    found = figures.latency(seconds)
    row: Row = {"what": what, "times": len(seconds), "median, ms": found["p50_ms"], "95 %, ms": found["p95_ms"]}
    return row | (_judge(found["p95_ms"], limit) if limit is not None else {})


def measure_events(page: Page, api: Api, times: int) -> Iterator[Row]:
    """Return the times from the request that changes the first node of the list to the row that shows it."""
    node = api.call("GET", "/ingot/v1/fleet", filter=_WITHOUT_NOTES, sort="name", limit=1)["nodes"][0]
    path = f"/v1/nodes/{node['uuid']}/maintenance"
    page.locator(_FILTER).fill(_WITHOUT_NOTES)
    page.wait_for_timeout(2000)
    seconds = []
    for number in range(times):
        reason = f"change {number}" if number % 2 == 0 else ""
        watch(page, (_FIRST_NAME, node["name"]), (_FIRST_NOTE, reason))
        began = time.time()
        api.call("PUT" if reason else "DELETE", path, {"reason": reason} if reason else None)
        seconds.append(read_shown(page) / 1e3 - began)
        page.wait_for_timeout(1500 + 73 * number)  # at any moment of what is read at intervals
    yield _row("from a request to its pixels", seconds, EVENT_MS)


def fill(db: Database, number: int) -> None:
    """Write the nodes of the site, some of which need an operator."""
    common = {"provision_updated_at": clock.now()}
    stock.fill(db, number - _FAILED - _HELD_BACK, **common)
    stock.fill(db, _FAILED, **common, provision_state=states.DEPLOYFAIL, last_error="The image cannot be read: 404.")
    held_back = {"provision_state": states.MANAGEABLE, "maintenance": True, "maintenance_reason": "its fan is loud"}
    stock.fill(db, _HELD_BACK, **common, **held_back)


def main() -> None:
    parser = stock.parser("benchmarks.console", __doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--screens", type=int, default=5, help="how often each page is opened")
    parser.add_argument("--times", type=int, default=20, help="keys, and events")
    given = parser.parse_args()
    facts = report.circumstances()
    found: dict[str, list[Row]] = {}
    with stock.service(given.driver, {}) as (subject, db):
        fill(db, given.nodes)
        found["First screens"] = [*measure_first_screens(subject, given.screens)]
        report.finish("console", facts, found)
        with Browser(subject.api.url) as browser:
            api = Api(subject.api.url)
            browser.open("/fleet")
            browser.page.locator(_FIRST_NAME).first.wait_for()
            found["Filter"] = [*measure_filter(browser.page, api, given.times)]
            found["Events"] = [*measure_events(browser.page, api, given.times)]
            report.finish("console", facts, found)


if __name__ == "__main__":
    main()
