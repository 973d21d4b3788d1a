"""What is typed, selected or asked for is not lost: by a click, a page, a missing answer, or another user."""

import json

from playwright.sync_api import Dialog, Route, expect

from tests.gate.console.case import ConsoleCase

_UNAVAILABLE = "status of 503"
_ROWS = 60


class Dialogs(ConsoleCase):
    def test_a_dialog_with_what_was_typed_is_closed_on_purpose_only(self) -> None:
        bench, browser = self.start()
        bench.enroll_fake("alpha")
        page, dialog = browser.page, browser.dialog
        browser.log_in("/nodes/alpha")
        browser.see_heading("alpha")
        browser.press("x")
        reason = dialog.get_by_label("Reason")
        box = reason.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(5, 5)
        page.mouse.up()  # as when a text is selected
        expect(dialog).to_be_visible()
        reason.fill("a fan is loud")
        page.mouse.click(5, 5)
        expect(reason).to_have_value("a fan is loud")
        dialog.get_by_text("As a command").click()
        dialog.get_by_role("button", name="Copy").click()
        message = dialog.locator(".toast")
        expect(message).to_be_visible()
        message.get_by_role("button", name="Close message").click()
        expect(message).to_have_count(0)
        browser.press("Escape")
        expect(dialog).to_be_hidden()
        browser.press("m")
        expect(dialog).to_be_visible()
        page.mouse.click(5, 5)
        expect(dialog).to_be_hidden()

    def test_a_deployment_waits_until_the_image_that_was_typed_is_saved(self) -> None:
        bench, browser = self.start()
        uuid = bench.enroll_fake("alpha", "available")
        bench.set_image(uuid)
        dialog = browser.dialog
        browser.log_in("/nodes/alpha")
        browser.see_state("available")
        browser.press("d")
        start = dialog.get_by_role("button", name="Deploy", exact=True)
        expect(start).to_be_enabled()
        dialog.get_by_label("Address", exact=True).fill("http://images.example.com/other.img")
        expect(start).to_be_disabled()
        expect(dialog).to_contain_text("Save the image first.")
        dialog.get_by_role("button", name="Save with the node").click()
        expect(start).to_be_enabled()
        self.assertEqual("http://images.example.com/other.img", bench.user.node(uuid)["instance_info"]["image_source"])

    def test_what_became_of_each_node_is_kept_when_an_answer_does_not_come(self) -> None:
        bench, browser = self.start()
        for name in ("able-1", "able-2", "left-out"):
            bench.enroll_fake(name, "manageable")
        page, dialog = browser.page, browser.dialog
        browser.log_in("/fleet")
        page.get_by_label("Select all that match").check()
        page.get_by_label("Select left-out").click()
        expect(page.get_by_text("2 selected")).to_be_visible()
        browser.choose_verb("Provide")
        expect(dialog).to_contain_text("2 would accept")
        expect(dialog.get_by_role("region", name="Plan")).to_contain_text("able-1")
        dialog.get_by_text("As a command").click()
        command = dialog.get_by_role("tabpanel")
        expect(command).to_contain_text("able-2")
        expect(command).not_to_contain_text("left-out")
        held: list[Route] = []

        def hold(route: Route) -> None:
            if json.loads(route.request.post_data or "{}").get("dry_run") or held:
                route.continue_()
            else:
                held.append(route)

        page.route("**/ingot/v1/bulk", hold)
        dialog.get_by_role("button", name="Provide 2 nodes").click()
        expect(dialog.get_by_role("button", name="Stop")).to_be_focused()
        browser.press("Escape", "Escape")
        expect(dialog).to_contain_text("Asking the nodes (0 of 2)")
        browser.expect_complaints(_UNAVAILABLE)
        held[0].fulfill(status=503, body="{}")
        expect(dialog).to_contain_text("The answer for 2 nodes did not come")
        dialog.get_by_role("button", name="Go on with the rest").click()
        expect(dialog).to_contain_text("2 accepted")
        dialog.get_by_role("button", name="Close", exact=True).last.click()
        self.assertEqual("manageable", bench.user.node("left-out")["provision_state"])


class Pages(ConsoleCase):
    def test_who_comes_back_to_the_fleet_finds_place_and_selection(self) -> None:
        bench, browser = self.start()
        for number in range(_ROWS):
            bench.enroll_fake(f"spare-{number:02}")
        page = browser.page
        browser.log_in("/fleet")
        grid = page.get_by_role("grid", name="Machines")
        expect(page.get_by_text(f"{_ROWS} nodes")).to_be_visible()
        grid.focus()
        browser.press("End", "Space", "ArrowUp", "Shift+Space")
        expect(page.get_by_text("2 selected")).to_be_visible()
        before = grid.evaluate("(one) => one.scrollTop")
        self.assertGreater(before, 0)
        browser.press("Enter")
        browser.see_heading(f"spare-{_ROWS - 2}")
        page.go_back()
        expect(page.get_by_text("2 selected")).to_be_visible()
        expect(grid.locator(".is-active")).to_contain_text(f"spare-{_ROWS - 2}")
        self.assertEqual(before, grid.evaluate("(one) => one.scrollTop"))

    def test_a_draft_is_left_on_purpose_only_and_outlives_a_deletion(self) -> None:
        bench, browser = self.start()
        step = {"interface": "deploy", "step": "erase_devices_metadata", "args": {}, "order": 1}
        bench.user.post("/v1/runbooks", {"name": "wipe", "steps": [step]})
        page = browser.page
        answers: list[str] = []

        def stay(question: Dialog) -> None:
            answers.append(question.message)
            question.dismiss()

        page.on("dialog", stay)
        browser.log_in("/plans?kind=runbook&plan=wipe")
        description = page.get_by_label("Description")
        description.fill("Before a machine leaves")
        page.get_by_role("link", name="Home").click()
        browser.see_heading("Plans")
        page.get_by_role("heading", level=1).click()
        page.evaluate("document.activeElement?.blur()")
        browser.press("g", "h")
        browser.see_heading("Plans")
        self.assertEqual(2, len(answers), answers)
        bench.user.patch("/v1/runbooks/wipe", {"/name": "erase"})
        expect(page.get_by_role("heading", level=2, name="erase").first).to_be_visible()
        expect(description).to_have_value("Before a machine leaves")
        bench.user.delete("/v1/runbooks/erase")
        expect(page.get_by_text("It was deleted meanwhile.")).to_be_visible()
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("is saved.")).to_be_visible()
        self.assertEqual("Before a machine leaves", bench.user.get("/v1/runbooks/wipe")["description"])
        self.assertEqual(2, len(answers), answers)
