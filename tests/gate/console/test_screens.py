"""Each screen in light and dark, wide and narrow: axe finds nothing, nothing sticks out, and a picture stays."""

from playwright.sync_api import expect

from tests.functional.deployment import lab
from tests.gate.console.case import ConsoleCase

_TABS = ("timeline", "plan", "logs", "console", "hardware", "network", "history", "json")
_READY = ".loading"


class Screens(ConsoleCase):
    def look_at(self, name: str) -> list[str]:
        """Look at what is shown as soon as it is loaded."""
        expect(self.browser.page.locator(_READY)).to_have_count(0, timeout=lab.PATIENCE * 1000)
        return self.browser.look(name)

    def test_pages(self) -> None:
        bench, browser = self.start(machines=3)
        bench.furnish()
        browser.open("/")
        expect(browser.page.get_by_role("button", name="Log in")).to_be_visible()
        wrong = self.look_at("login")
        browser.log_in("/")
        places = ("/", "/fleet", "/plans", "/plans?plan=CUSTOM_IMAGE", "/plans?kind=runbook", "/conductors", "/inbox")
        for path in places:
            browser.open(path)
            expect(browser.page.get_by_role("heading", level=1)).to_be_visible()
            words = [word for word in path.replace("?", "/").replace("=", "-").split("/") if word]
            wrong += self.look_at("-".join(words).lower() or "home")
        self.assertEqual([], wrong, "\n".join(wrong))

    def test_the_page_of_a_machine(self) -> None:
        bench, browser = self.start(machines=3)
        bench.furnish()
        browser.log_in(f"/nodes/{self.name_of(1)}")
        browser.see_state("deploy failed")
        wrong = self.look_at("node-failed")
        for tab in _TABS:
            browser.open(f"/nodes/{self.name_of(0)}?tab={tab}")
            browser.see_state("active")
            if tab == "console":
                expect(browser.page.get_by_role("region", name="Serial console")).to_contain_text("Connected")
            wrong += self.look_at(f"node-{tab}")
        self.assertEqual([], wrong, "\n".join(wrong))

    def test_dialogs_and_menus(self) -> None:
        bench, browser = self.start(machines=3)
        bench.furnish()
        page = browser.page
        browser.log_in("/fleet")
        browser.see_heading("Fleet")
        browser.press("n")
        expect(browser.dialog.locator("input[name=ipmi_address], fieldset")).not_to_have_count(0)
        wrong = self.look_at("dialog-enroll")
        browser.press("Escape")
        page.get_by_label("Select all that match").check()
        page.get_by_role("button", name="Verbs").click()
        wrong += self.look_at("menu-verbs")
        page.get_by_role("menuitem", name="Provide").first.click()
        expect(browser.dialog).to_contain_text("would refuse")
        wrong += self.look_at("dialog-bulk")
        browser.press("Escape")
        browser.press("?")
        wrong += self.look_at("dialog-keys")
        browser.press("Escape")
        page.get_by_text("As a command").click()
        wrong += self.look_at("command")
        browser.press("Escape")
        expect(page.get_by_text("As a command")).to_be_focused()
        browser.open(f"/nodes/{self.name_of(0)}?tab=console")
        page.get_by_role("region", name="Serial console").get_by_text("As a command").click()
        wrong += self.look_at("command-console")
        browser.open(f"/nodes/{self.name_of(1)}")
        browser.see_state("deploy failed")
        browser.press("d")
        expect(browser.dialog.get_by_text("The node would accept this.")).to_be_visible()
        wrong += self.look_at("dialog-deploy")
        self.assertEqual([], wrong, "\n".join(wrong))
