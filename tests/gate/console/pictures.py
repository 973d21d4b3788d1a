"""The pictures of the console in the guides: ``python -m tests.gate.console.pictures`` makes them anew."""

import io
import pathlib

from PIL import Image
from playwright.sync_api import Locator, ViewportSize, expect

from tests.functional.deployment import lab
from tests.gate import environments
from tests.gate.console.browser import LIMIT_MS, Browser
from tests.gate.console.site import Site

FOLDER = environments.ROOT / "doc" / "source" / "images"

_WIDTH = 1100  # a page of the guides shows it at two thirds of that
_COLORS = 128
_HANGING = 3
"""The machine whose agent stands still, for work that is under way."""

# Machines that take a few seconds to boot, as people have seen it.
_RACK = {
    "name_prefix": "rack1-u",
    "boot_delay": 2.0,
    "os_boot_delay": 3.0,
    "power_off_delay": 1.0,
    "agent_start_delay": 2.0,
    "agent_settle": 0.5,
}


class Album:
    """Takes the pictures of a furnished site.

    :param folder: where they are kept.
    """

    def __init__(self, site: Site, browser: Browser, folder: pathlib.Path) -> None:
        self._site = site
        self._browser = browser
        self._page = browser.page
        self._folder = folder

    def take_all(self) -> None:
        first, _, _, hanging = (machine["name"] for machine in self._site.rack.machines)
        self._site.rack.control.order_fault(hanging, "agent_hangs_at_step", "write_image")
        uuid = self._site.start_deploy(_HANGING, resource_class="large")
        self._site.eventually(lambda: self._is_at(uuid, "write_image"), "the agent stands still")
        self._browser.log_in("/")
        self.take("home", "/", self._page.get_by_role("progressbar"), 720)
        self.take("fleet", "/fleet", self._page.get_by_role("link", name=first), 640)
        self.take("node", f"/nodes/{first}", self._page.locator(".ran").first, 900)
        self.take("plans", "/plans?plan=CUSTOM_IMAGE", self._page.get_by_label("Name", exact=True), 760)
        self.take("conductors", "/conductors", self._page.get_by_role("heading", name="conductor-0"), 320)
        self._keep("serial", self.type_on(first))

    def _is_at(self, uuid: str, step: str) -> bool:
        return ((self._site.user.node(uuid)["deploy_step"] or {}).get("step")) == step

    def take(self, name: str, path: str, sign: Locator, height: int) -> None:
        """Take the picture of a page.

        :param sign: what the page has when it is complete.
        """
        self._page.set_viewport_size(ViewportSize(width=_WIDTH, height=height))
        self._browser.open(path)
        expect(sign).to_be_visible()
        expect(self._page.locator(".loading")).to_have_count(0)
        self._keep(name)

    def type_on(self, name: str) -> Locator:
        """Reset a machine, see it boot on its serial console, and type; return where that is on the page."""
        self._page.set_viewport_size(ViewportSize(width=_WIDTH, height=640))
        self._browser.open(f"/nodes/{name}?tab=console")
        console = self._page.get_by_role("region", name="Serial console")
        expect(console.get_by_role("status")).to_contain_text("Connected")
        self._site.rack.control.power(name, "reset")
        screen = console.locator(".xterm-rows")
        expect(screen).to_contain_text(f"{name}: os", timeout=max(LIMIT_MS, lab.PATIENCE * 1000))
        console.get_by_role("button", name="Type").click()
        expect(console.get_by_role("status")).to_contain_text("You type")
        self._page.keyboard.type("root\n")
        expect(screen).to_contain_text(f"{name} login: ")
        return console

    def _keep(self, name: str, part: Locator | None = None) -> None:
        """Keep what is shown, in few colors: a page has no more, and the file is a third of the size.

        :param part: of the page; None: all that the window shows.
        """
        self._page.wait_for_timeout(500)
        shown = Image.open(io.BytesIO((part or self._page).screenshot())).convert("RGB")
        few = shown.quantize(_COLORS, dither=Image.Dither.NONE)
        few.save(self._folder / f"console-{name}.png", optimize=True)


def make(folder: pathlib.Path) -> None:
    """Make all pictures in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with Site(machines=4, rack=_RACK) as site, Browser(site.url) as browser:
        site.furnish()
        Album(site, browser, folder).take_all()
        browser.check_complaints()


def main() -> None:
    make(FOLDER)
    for place in sorted(FOLDER.glob("console-*.png")):
        print(f"{place.relative_to(environments.ROOT)}  {place.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
