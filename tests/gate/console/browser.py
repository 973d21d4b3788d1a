"""A browser before the console: Debian's Chromium, driven by Playwright, and what it complains about."""

import functools
import pathlib
import re
import shutil
from typing import Literal

import fixtures
from playwright.sync_api import ConsoleMessage, Locator, Page, Request, ViewportSize, expect, sync_playwright

from tests import patience
from tests.gate import environments
from tests.gate.console import axe, site

LIMIT_MS = patience.seconds(30) * 1000
SCREENSHOTS = environments.ROOT / ".gate" / "console"
WIDTHS = (1280, 400)
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")

_HEIGHTS = {1280: 800, 400: 860}
_PROGRAM = "chromium"
_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
_REPORTS = "/console/csp"

# Chromium writes of what its policy of content has refused to the console, but not of all, and not with the place.
_TELL_REFUSALS = """
document.addEventListener("securitypolicyviolation", (event) =>
    console.error(`policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""

_WIDER = """() => {
    const root = document.documentElement;
    const list = (selector, isOut) => [...document.querySelectorAll(selector)]
        .filter((one) => isOut(one.getBoundingClientRect()))
        .map((one) => `${one.tagName.toLowerCase()}.${one.className}`)
        .slice(0, 12);
    const chosen = "[role=menu], [role=listbox], [role=tab][aria-selected=true], dialog[open], details > .command";
    const out = list(chosen, ({ left, right }) => left < 0 || right > root.clientWidth);
    if (root.scrollWidth <= root.clientWidth) return out;
    const wide = list("body *", ({ right }) => right > root.clientWidth + 1);
    return [`${root.scrollWidth} of ${root.clientWidth} pixels`, ...wide, ...out];
}"""

# What a page does when it was shown is done then: it listens to keys.
_TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"

_FOCUSED = """() => {
    const found = document.activeElement;
    if (!found || found === document.body) return null;
    const place = [...document.querySelectorAll("*")].indexOf(found);
    const name = found.getAttribute("aria-label") ?? found.textContent.slice(0, 40);
    return `${place} ${found.tagName.toLowerCase()} ${name}`;
}"""

expect.set_options(timeout=LIMIT_MS)


class Browser(fixtures.Fixture):
    """One page in a browser of its own.

    :param url: of the API.
    :ivar complaints: errors of the page and of its console, and what the policy of content has refused.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.complaints: list[str] = []
        self._expected: list[str] = []

    def _setUp(self) -> None:
        program = shutil.which(_PROGRAM)
        if program is None:
            raise AssertionError(f"There is no program {_PROGRAM}: Debian's package of that name has it.")
        playwright = sync_playwright().start()
        self.addCleanup(playwright.stop)
        chromium = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS, timeout=LIMIT_MS)
        self.addCleanup(chromium.close)
        context = chromium.new_context(
            base_url=self._url, locale="en-US", timezone_id="UTC", reduced_motion="reduce", viewport=_size(WIDTHS[0])
        )
        context.set_default_timeout(LIMIT_MS)
        context.add_init_script(_TELL_REFUSALS)
        self.page: Page = context.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error of the page: {error}"))
        self.page.on("request", self._look_at)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)

    @functools.cached_property
    def _axe(self) -> axe.Axe:
        return axe.Axe(self.page.context.new_cdp_session(self.page))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def _look_at(self, request: Request) -> None:
        if request.url.endswith(_REPORTS):
            self.complaints.append(f"report of the policy of content: {request.post_data}")

    def expect_complaints(self, *patterns: str) -> None:
        """Have errors that a test provokes count for nothing from now on."""
        self._expected += patterns

    def check_complaints(self) -> None:
        """Check that the browser has nothing to complain about."""
        if not self.page.is_closed():
            self.page.wait_for_timeout(100)  # what was said last arrives
        found = [one for one in self.complaints if not any(re.search(pattern, one) for pattern in self._expected)]
        if found:
            raise AssertionError("The browser complains:\n" + "\n".join(found))

    # What a person does

    def open(self, path: str = "/") -> None:
        """Open a page of the console by its address."""
        self.page.goto(f"/console{path}")

    def log_in(self, path: str = "/", password: str = site.PASSWORD) -> None:
        """Open a page; fill in the login that stands before it."""
        self.open(path)
        self.page.get_by_label("User", exact=True).fill(site.USER)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()

    def see_heading(self, text: str) -> None:
        """Wait until a page is there."""
        expect(self.page.get_by_role("heading", level=1, name=text, exact=True)).to_be_visible()
        self._wait_for_keys()

    def see_state(self, state: str, limit_s: float | None = None) -> None:
        """Wait until the page of a node says that it is in a state."""
        badge = self.page.locator(".page-head .state-name").first
        expect(badge).to_have_text(state, timeout=LIMIT_MS if limit_s is None else limit_s * 1000)
        self._wait_for_keys()

    def _wait_for_keys(self) -> None:
        """Wait until no login stands above the page, and it listens to keys."""
        expect(self.page.get_by_role("button", name="Log in")).to_have_count(0)
        self.page.evaluate(_TWO_FRAMES)

    @property
    def dialog(self) -> Locator:
        """The dialog that is open."""
        return self.page.get_by_role("dialog")

    def choose_verb(self, text: str) -> None:
        """Open the menu of verbs, and choose one."""
        self.page.get_by_role("button", name="Verbs").click()
        self.page.get_by_role("menuitem", name=re.compile(rf"^{text}\b")).click()

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def find_focus(self) -> str | None:
        """Return which element has the focus; None: the page as a whole."""
        found: str | None = self.page.evaluate(_FOCUSED)
        return found

    def walk(self, most: int = 150) -> list[str]:
        """Press Tab until the focus has left the page; return where it has been.

        :raises AssertionError: it never leaves: something holds it.
        """
        passed: list[str] = []
        for _ in range(most):
            self.press("Tab")
            focus = self.find_focus()
            if focus is None or focus in passed[:1]:
                return passed
            passed.append(focus)
        raise AssertionError(f"Tab does not leave the page; the last were {passed[-6:]}")

    # What is kept and checked of a screen

    def shoot(self, name: str) -> pathlib.Path:
        """Keep a picture of what is shown."""
        place = SCREENSHOTS / f"{name}.png"
        self.page.screenshot(path=place)
        return place

    def look(self, name: str) -> list[str]:
        """Look at what is shown in light and dark, wide and narrow; return what is wrong with it.

        Each time a picture is kept. It is wrong when axe says so, or when it is wider than the window.
        """
        wrong = []
        for width in WIDTHS:
            self.page.set_viewport_size(_size(width))
            for theme in THEMES:
                self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                self.page.wait_for_timeout(200)
                where = f"{name}-{theme}-{width}"
                self.shoot(where)
                wrong += [f"{where}: {violation}" for violation in self._axe.find_violations()]
                wider = self.page.evaluate(_WIDER)
                if wider:
                    wrong.append(f"{where}: it sticks out of the window: {', '.join(wider)}")
        self.page.set_viewport_size(_size(WIDTHS[0]))
        self.page.emulate_media(color_scheme=THEMES[0], reduced_motion="reduce")
        return wrong


def _size(width: int) -> ViewportSize:
    return {"width": width, "height": _HEIGHTS[width]}
