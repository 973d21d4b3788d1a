"""What tests of the console share: a running Ingot, and a browser that must have nothing to complain about."""

from typing import Any

import testtools

from tests.gate.console import browser, site


class ConsoleCase(testtools.TestCase):
    """One laboratory and one browser for each test. A test that fails leaves a picture of what was shown."""

    def start(self, machines: int = 1) -> tuple[site.Site, browser.Browser]:
        self.site = self.useFixture(site.Site(machines))
        self.browser = self.useFixture(browser.Browser(self.site.url))
        self.addCleanup(self.check_quiet)
        self.addOnException(lambda _: self._keep_picture())
        return self.site, self.browser

    def check_quiet(self) -> None:
        """Check that neither the browser complains nor, on its behalf, the server."""
        self.browser.check_complaints()
        log = self.site.process.log.read_text(errors="replace")
        self.assertEqual([], [line for line in log.splitlines() if "A browser reports" in line])

    def name_of(self, index: int) -> str:
        name: str = self.site.rack.machines[index]["name"]
        return name

    def order_fault(self, name: str, **more: Any) -> None:
        self.site.rack.control.order_fault(self.name_of(0), name, **more)

    def _keep_picture(self) -> None:
        if not self.browser.page.is_closed():
            self.browser.shoot(f"failed-{self.id().rpartition('.')[2]}")
