"""What operators do in the console: log in, enroll, deploy, fix, act on many, type, and all of it by keyboard."""

from playwright.sync_api import Locator, Route, expect

from tests.functional.deployment import lab
from tests.gate.console import site
from tests.gate.console.case import ConsoleCase

_REFUSED_LOGIN = "status of 401"
_FORBIDDEN = "status of 403"
_LOST = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")


class Sessions(ConsoleCase):
    def test_a_wrong_password_is_refused_and_the_right_one_leads_to_the_requested_page(self) -> None:
        _, browser = self.start()
        browser.expect_complaints(_REFUSED_LOGIN)
        browser.log_in("/fleet", "wrong")
        expect(browser.page.get_by_role("alert")).to_contain_text("password")
        expect(browser.page.get_by_label("Password")).to_be_focused()
        browser.page.keyboard.type(site.PASSWORD)
        browser.press("Enter")
        browser.see_heading("Fleet")
        expect(browser.page.get_by_role("status").filter(has_text="Live")).to_be_visible()
        browser.page.get_by_role("button", name=f"User {site.USER}").click()
        browser.page.get_by_role("menuitem", name="Log out").click()
        expect(browser.page.get_by_role("button", name="Log in")).to_be_visible()
        browser.page.reload()
        expect(browser.page.get_by_role("button", name="Log in")).to_be_visible()

    def test_a_lost_connection_is_shown_until_it_stands_again(self) -> None:
        bench, browser = self.start()
        browser.log_in("/fleet")
        live = browser.page.get_by_role("status").filter(has_text="Live")
        banner = browser.page.get_by_label("Connection", exact=True)
        expect(live).to_be_visible()
        expect(banner).to_be_hidden()
        browser.expect_complaints(*_LOST)
        bench.process.stop()
        expect(banner).to_contain_text("Connection lost")
        expect(banner).to_contain_text("may be stale since")
        browser.shoot("lost")
        banner.get_by_role("button", name="Try again").click()
        expect(banner).to_contain_text("Connection lost")
        bench.process.start()
        bench.wait_until_served()
        bench.enroll_fake("meanwhile")
        browser.page.evaluate("dispatchEvent(new Event('online'))")  # else it waits for up to half a minute
        expect(live).to_be_visible()
        expect(banner).to_be_hidden()
        expect(browser.page.get_by_role("link", name="meanwhile")).to_be_visible()
        bench.enroll_fake("later")
        expect(browser.page.get_by_role("link", name="later")).to_be_visible()

    def test_what_was_begun_is_still_there_after_a_new_login(self) -> None:
        bench, browser = self.start()
        page = browser.page
        bench.enroll_fake("alpha")
        browser.log_in("/nodes/alpha")
        browser.see_heading("alpha")
        browser.press("x")
        browser.dialog.get_by_label("Reason").fill("a fan is loud")
        expect(browser.dialog.get_by_text("The node would accept this.")).to_be_visible()
        browser.expect_complaints(_REFUSED_LOGIN)
        page.context.clear_cookies()
        # Not a click: another request of the page may have brought the login first.
        browser.dialog.get_by_role("button", name="Set maintenance").dispatch_event("click")
        login = browser.dialog.filter(has_text="Your session has ended.")
        expect(login).to_be_visible()
        browser.shoot("ended")
        browser.press("Escape", "Escape")
        expect(login).to_be_visible()
        login.get_by_label("User", exact=True).fill(site.USER)
        login.get_by_label("Password").fill(site.PASSWORD)
        browser.press("Enter")
        expect(login).to_be_hidden()
        browser.dialog.get_by_role("button", name="Back").click()
        expect(browser.dialog.get_by_label("Reason")).to_have_value("a fan is loud")
        expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()

    def test_who_may_not_follow_events_reads_again(self) -> None:
        bench, browser = self.start()
        page = browser.page
        browser.expect_complaints(_FORBIDDEN)
        page.route("**/ingot/v1/events", lambda route: route.fulfill(status=403, body="{}"))
        page.route("**/ingot/v1/permissions", _forbid_inbox)
        browser.log_in("/fleet")
        expect(page.get_by_role("status").filter(has_text="Not live")).to_be_visible()
        expect(page.get_by_label("Connection", exact=True)).to_be_hidden()
        bench.enroll_fake("meanwhile")
        page.get_by_role("banner").get_by_role("button", name="Read again").click()
        expect(page.get_by_role("link", name="meanwhile")).to_be_visible()
        page.get_by_role("button", name="Inbox").click(force=True)  # it is disabled, and says why
        expect(page.get_by_role("status").filter(has_text="Only for others.")).to_be_visible()
        browser.see_heading("Fleet")
        self.assertEqual([], browser.look("not-allowed"))


def _forbid_inbox(route: Route) -> None:
    answer = route.fetch()
    rules = answer.json()["rules"]
    rules["ingot:inbox:get"] = {"allowed": False, "reason": "Only for others."}
    route.fulfill(response=answer, json={"rules": rules})


class Machines(ConsoleCase):
    def test_one_is_enrolled_deployed_and_watched_without_a_reload(self) -> None:
        bench, browser = self.start()
        page, machine = browser.page, bench.rack.machines[0]
        browser.log_in("/fleet")
        page.get_by_role("button", name="Enroll").click()
        page.evaluate("document.body.dataset.first = 'yes'")
        browser.dialog.get_by_label("Name", exact=True).fill(machine["name"])
        browser.dialog.get_by_label("MAC address").fill(machine["macs"][0])
        self.fill_access()
        browser.shoot("enroll")
        browser.dialog.get_by_role("button", name="Enroll", exact=True).click()
        browser.see_heading(machine["name"])
        browser.see_state("manageable")
        self.do("Provide")
        browser.see_state("available", lab.PATIENCE)
        browser.choose_verb("Deploy")
        browser.dialog.get_by_label("Address", exact=True).fill(f"{bench.files.url}/image.raw")
        browser.dialog.get_by_label("Checksum").fill(bench.checksum)
        browser.dialog.get_by_role("button", name="Save with the node").click()
        expect(browser.dialog.get_by_text("The node would accept this.")).to_be_visible()
        expect(browser.dialog.get_by_role("region", name="Plan")).to_contain_text("write_image")
        browser.shoot("deploy")
        browser.dialog.get_by_role("button", name="Deploy", exact=True).click()
        expect(browser.dialog).to_be_hidden()
        expect(page.locator(".ran", has_text="write_image").first).to_be_visible(timeout=lab.PATIENCE * 1000)
        browser.see_state("active", lab.PATIENCE)
        browser.shoot("deployed")
        expect(page.locator(".page-head .power")).to_have_text("on")
        self.assertEqual("yes", page.evaluate("document.body.dataset.first"))
        self.assertTrue(bench.holds_image(0))

    def test_an_unknown_machine_is_accepted_from_the_inbox(self) -> None:
        bench, browser = self.start()
        bench.rack.control.power(self.name_of(0), "on")
        bench.eventually(lambda: bench.user.get("/ingot/v1/inbox")["inbox"], "the machine is in the inbox")
        browser.log_in("/inbox")
        entry = browser.page.get_by_role("listitem").filter(has_text=self.name_of(0))
        expect(entry).to_contain_text(bench.rack.machines[0]["macs"][0])
        entry.get_by_role("button", name="Accept").click()
        browser.dialog.get_by_label("Name", exact=True).fill("from-the-inbox")
        self.fill_access()
        browser.shoot("accept")
        browser.dialog.get_by_role("button", name="Accept", exact=True).click()
        browser.see_heading("from-the-inbox")
        browser.see_state("manageable", lab.PATIENCE)
        browser.page.get_by_role("link", name="Inbox").click()
        expect(browser.page.get_by_text("No unknown machine has called.")).to_be_visible()

    def fill_access(self) -> None:
        """Say in the dialog how the BMC of the machine is reached."""
        dialog = self.browser.dialog
        dialog.locator("select[name=driver]").select_option("ipmi")
        dialog.get_by_text("more properties").click()
        for name, value in self.site.access().items():
            dialog.locator(f"input[name={name}]").fill(str(value))

    def do(self, verb: str) -> None:
        """Choose a verb from the menu of a node, and start it in its dialog."""
        self.browser.choose_verb(verb)
        self.start_verb(verb)

    def start_verb(self, text: str) -> None:
        """Wait until the dialog says that the node accepts; start the verb."""
        expect(self.browser.dialog.get_by_text("The node would accept this.")).to_be_visible()
        self.browser.dialog.get_by_role("button", name=text, exact=True).click()
        expect(self.browser.dialog).to_be_hidden()

    def test_a_failure_is_shown_with_its_reason_and_fixed_by_the_next_action(self) -> None:
        bench, browser = self.start()
        name = self.name_of(0)
        self.order_fault(site.IMAGE_FAULT)
        browser.log_in()
        expect(browser.page.get_by_text("Nothing needs attention.")).to_be_visible()
        uuid = bench.start_deploy(0)
        need = browser.page.get_by_role("listitem").filter(has=browser.page.get_by_role("link", name=name))
        need = need.filter(has_text="Fix the cause and deploy again.")
        expect(need).to_contain_text("404", timeout=lab.PATIENCE * 1000)
        expect(need).to_contain_text("deploy.write_image")
        browser.shoot("failed")
        need.get_by_role("link", name=name).click()
        browser.see_state("deploy failed")
        why = browser.page.get_by_role("region", name="Why it is here")
        expect(why).to_contain_text("404")
        expect(browser.page.locator(".ran-errors").first).to_contain_text("404")
        bench.rack.control.clear_faults(name)
        why.get_by_role("button", name=f"Deploy {name}").click()
        self.start_verb("Deploy")
        browser.see_state("active", lab.PATIENCE)
        expect(why).not_to_contain_text("404")
        self.assertEqual("active", bench.user.node(uuid)["provision_state"])
        browser.page.get_by_role("link", name="Home").click()
        expect(browser.page.get_by_text("Nothing needs attention.")).to_be_visible()

    def test_many_are_asked_at_once_and_one_refuses_with_its_reason(self) -> None:
        bench, browser = self.start()
        for name in ("able-1", "able-2"):
            bench.enroll_fake(name, "manageable")
        bench.enroll_fake("new")
        browser.log_in("/fleet")
        browser.page.get_by_label("Select all that match").check()
        expect(browser.page.get_by_text("3 selected")).to_be_visible()
        browser.choose_verb("Provide")
        expect(browser.dialog).to_contain_text("2 would accept")
        expect(browser.dialog).to_contain_text("1 would refuse")
        refusal = browser.dialog.get_by_label("Results by node").get_by_role("listitem")
        expect(refusal).to_contain_text("new")
        expect(refusal).to_contain_text("enroll")
        browser.shoot("bulk")
        browser.dialog.get_by_role("button", name="Provide 2 nodes").click()
        expect(browser.dialog).to_contain_text("2 accepted")
        browser.dialog.get_by_role("button", name="Close", exact=True).last.click()
        for name in ("able-1", "able-2"):
            expect(self.row(name)).to_contain_text("available")
            expect(self.row(name).locator(".note")).to_have_count(0)  # its lock is released
        expect(self.row("new")).to_contain_text("enroll")

    def row(self, name: str) -> Locator:
        page = self.browser.page
        return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))

    def test_the_serial_console_shows_what_the_machine_says_and_takes_what_is_typed(self) -> None:
        bench, browser = self.start()
        page, name = browser.page, self.name_of(0)
        bench.reach(bench.start_deploy(0, **site.SOL), "active")
        bench.rack.control.wait_for_state(name, "os")
        browser.log_in(f"/nodes/{name}?tab=console")
        console = page.get_by_role("region", name="Serial console")
        expect(console.get_by_role("status")).to_contain_text("Connected")
        expect(console.get_by_role("status")).to_contain_text("Read only")
        bench.rack.control.power(name, "reset")
        screen = console.locator(".xterm-rows")
        expect(screen).to_contain_text("firmware")
        expect(screen).to_contain_text(f"{name}: os")
        console.get_by_role("button", name="Type").click()
        expect(console.get_by_role("status")).to_contain_text("You type")
        expect(page.get_by_label(f"Serial console of {name}")).to_be_focused()
        page.keyboard.type("typed-here\n")
        expect(screen).to_contain_text("typed-here")
        expect(screen).to_contain_text(f"{name} login:")
        browser.shoot("typed")
        browser.press("Tab")
        expect(page.get_by_label(f"Serial console of {name}")).to_be_focused()  # the machine's key
        browser.press("Control+Shift+E")
        expect(console.get_by_role("button", name="Stop typing")).to_be_focused()
        browser.press("Enter")
        expect(console.get_by_role("status")).to_contain_text("Read only")
        self.assertGreater(len(browser.walk()), 5)


class Keyboard(ConsoleCase):
    def log_in(self) -> None:
        """Log in without a mouse."""
        expect(self.browser.page.get_by_label("User", exact=True)).to_be_focused()
        self.browser.page.keyboard.type(site.USER)
        self.browser.press("Tab")
        self.browser.page.keyboard.type(site.PASSWORD)
        self.browser.press("Enter")
        self.browser.see_heading("Home")

    def test_a_machine_is_searched_and_a_verb_done_by_letters(self) -> None:
        bench, browser = self.start()
        page = browser.page
        for name in ("alpha", "beta"):
            bench.enroll_fake(name)
        browser.open()
        self.log_in()
        browser.press("g", "f")
        browser.see_heading("Fleet")
        browser.press("/")
        expect(page.get_by_role("combobox", name="Filter of the fleet")).to_be_focused()
        page.keyboard.type("bet")
        expect(page.get_by_text("1 of 2")).to_be_visible()
        browser.press("Enter")
        grid = page.get_by_role("grid", name="Machines")
        expect(grid).to_be_focused()
        browser.press("Space")
        expect(page.get_by_text("1 selected")).to_be_visible()
        browser.press("x")
        expect(browser.dialog.get_by_label("Reason")).to_be_focused()
        page.keyboard.type("a fan is loud")
        self.press_button("Set maintenance")
        expect(browser.dialog).to_be_hidden()
        expect(grid).to_be_focused()
        expect(page.get_by_role("row", name="beta")).to_contain_text("a fan is loud")
        browser.press("Enter")
        browser.see_heading("beta")

    def press_button(self, name: str) -> None:
        """Go to a button of the dialog with Tab, and press it."""
        button = self.browser.dialog.get_by_role("button", name=name)
        expect(button).to_be_enabled()
        for _ in range(30):
            if button.evaluate("(one) => one === document.activeElement"):
                break
            self.browser.press("Tab")
        self.browser.press("Enter")

    def test_a_machine_is_looked_at_by_keys(self) -> None:
        bench, browser = self.start()
        bench.enroll_fake("alpha")
        browser.log_in("/nodes/alpha")
        browser.see_heading("alpha")
        browser.press("?")
        expect(browser.dialog).to_contain_text("Set maintenance")
        browser.press("Escape")
        expect(browser.dialog).to_be_hidden()
        browser.press("8")
        expect(browser.page.get_by_role("tab", name="JSON")).to_have_attribute("aria-selected", "true")
        browser.press("m")
        expect(browser.dialog.get_by_text("The node would accept this.")).to_be_visible()
        self.press_button("Manage")
        browser.see_state("manageable")
        browser.press("d")  # a verb that this state has not
        expect(browser.page.get_by_role("status").filter(has_text="Deploy is for nodes")).to_be_visible()

    def test_the_focus_goes_to_the_title_of_the_page(self) -> None:
        bench, browser = self.start()
        page = browser.page
        bench.enroll_fake("alpha")
        browser.log_in("/fleet")
        browser.see_heading("Fleet")
        page.get_by_role("link", name="alpha").click()
        expect(page.get_by_role("heading", level=1, name="alpha")).to_be_focused()
        page.go_back()
        expect(page.get_by_role("heading", level=1, name="Fleet")).to_be_focused()
        page.get_by_text("As a command").click()
        panel = page.get_by_role("tabpanel")
        expect(panel).to_be_visible()
        for _ in range(6):
            browser.press("Tab")
        expect(panel).to_be_hidden()
        browser.expect_complaints("status of 40[04]")
        browser.open("/nodes/100%")  # what decodeURIComponent refuses
        expect(page.get_by_role("main")).to_contain_text("100%")

    def test_no_page_is_a_trap(self) -> None:
        bench, browser = self.start()
        bench.enroll_fake("alpha")
        browser.open()
        self.log_in()
        self.assertIn("Skip to the page", browser.walk()[0])
        for path in ("/", "/fleet", "/nodes/alpha", "/plans", "/conductors", "/inbox"):
            browser.open(path)
            expect(browser.page.get_by_role("heading", level=1)).to_be_visible()
            expect(browser.page.locator(".loading")).to_have_count(0)
            self.assertGreater(len(browser.walk()), 8, path)
