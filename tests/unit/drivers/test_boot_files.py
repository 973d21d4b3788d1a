"""Kernel and ramdisk that are not there are found before the machine boots; what cannot be judged is only noted."""

import collections
import pathlib
from typing import Any, ClassVar

import fixtures

from ingot.common import errors, states
from ingot.drivers.images import fetches
from ingot.drivers.interfaces import results
from tests import conductor_case, database, http_handler
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import HandledServer, SlowServer


class Server(HandledServer):
    """Answers GET with a status by path, and counts; methods but GET are refused, as with signed addresses."""

    def __init__(self, **statuses: int) -> None:
        asked = self.asked = collections.Counter[str]()

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                asked[self.path] += 1
                self.answer(statuses.get(self.path.strip("/").partition("?")[0], 404), b"x")

        super().__init__(Handler)


class BootFiles(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"service_catalog__endpoint_override": "http://10.0.0.1:6385/"}

    def setUp(self) -> None:
        super().setUp()
        self.patch(fetches, "_PATIENCE", conductor_case.PATIENCE)
        self.server = Server(kernel=200, initrd=206, moved=410, rescue=200, broken=503, closed=403)
        self.addCleanup(self.server.stop)

    def boots(self, kernel: str, ramdisk: str = "initrd", **columns: Any) -> fakes.MemoryTask:
        files = {
            key: name if ":" in name else f"{self.server.url}/{name}"
            for key, name in (("deploy_kernel", kernel), ("deploy_ramdisk", ramdisk))
        }
        return self.task(**{"boot_interface": "ipxe", "driver_info": files, **columns})

    def refused(self, task: fakes.MemoryTask) -> str:
        return self.assertRaises(errors.ImageError, task.driver.boot.check_ramdisk, task).message

    def doubts(self, task: fakes.MemoryTask) -> list[str]:
        self.assertEqual(results.DONE, task.driver.boot.check_ramdisk(task))
        found: list[str] = task.node.driver_internal_info.get("boot_file_doubts", [])
        return found

    def test_what_its_server_does_not_have_fails(self) -> None:
        for name, status in (("other?X-Signature=hush", 404), ("moved", 410)):
            message = self.refused(self.boots(name))
            for part in ("driver_info.deploy_kernel", self.server.url, f"HTTP {status}", "[pxe] check_boot_files"):
                self.assertIn(part, message)
            self.assertNotIn("hush", message)
        self.assertIn("driver_info.deploy_ramdisk", self.refused(self.boots("kernel", "other")))

    def test_of_an_option_it_names_the_option(self) -> None:
        task = self.boots("kernel", driver_info={})
        for key, name in (("deploy_kernel", "kernel"), ("deploy_ramdisk", "other")):
            task.conf.set_override(key, f"{self.server.url}/{name}", group="deploy")
        self.assertIn("[deploy] deploy_ramdisk: ", self.refused(task))

    def test_a_rescue_has_files_of_its_own(self) -> None:
        task = self.boots("other", flow="rescue")
        for name in ("rescue", "none"):
            task.set(driver_info={**task.node.driver_info, "rescue_kernel": f"{self.server.url}/{name}"})
            if name == "rescue":
                self.assertEqual([], self.doubts(task))
        self.assertIn("driver_info.rescue_kernel", self.refused(task))

    def test_a_rescue_has_files_of_the_operators(self) -> None:
        task = self.boots("kernel", flow="rescue", properties={"cpu_arch": "aarch64"})
        for name, value, expected in (
            ("rescue_kernel", "http://a/k", ("http://a/k", f"{self.server.url}/initrd")),
            ("rescue_kernel_by_arch", {"aarch64": "http://b/k"}, ("http://b/k", f"{self.server.url}/initrd")),
            ("rescue_ramdisk_by_arch", {"aarch64": "http://b/r"}, ("http://b/k", "http://b/r")),
            ("rescue_ramdisk_by_arch", {"x86_64": "http://b/r"}, ("http://b/k", f"{self.server.url}/initrd")),
        ):
            task.conf.set_override(name, value, group="deploy")
            self.assertEqual(expected, task.driver.boot.choose_ramdisk(task))
        task.set(flow="deploy")
        self.assertEqual(f"{self.server.url}/kernel", task.driver.boot.choose_ramdisk(task)[0])

    def test_files_of_the_conductors_host_need_a_web_server(self) -> None:
        task = self.boots("file:///srv/kernel")
        task.ports = [fakes.port()]
        error = self.assertRaises(errors.Invalid, task.driver.boot.validate, task)
        self.assertIn("[deploy] http_root and http_url", error.message)

    def published(self, **files: str) -> tuple[fakes.MemoryTask, pathlib.Path]:
        """Return a task on a node with files of this host, and the directory that a web server serves."""
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in ("images", "images/old", "html"):
            (root / name).mkdir()
        for name in ("images/ipa", "images/old/ipa", "secret"):
            (root / name).write_text(name)
        task = self.boots(*(f"file://{root}/{name}" for name in files.values()), power_state=states.POWER_OFF)
        task.ports = [fakes.port()]
        own = {"http_root": str(root / "html"), "http_url": "http://192.0.2.5:6180/"}
        for name, value in {**own, "file_url_allowed_paths": [str(root / "images")]}.items():
            task.conf.set_override(name, value, group="deploy")
        return task, root / "html"

    def test_files_of_the_conductors_host_are_published_while_the_agent_boots(self) -> None:
        task, html = self.published(kernel="images/ipa", ramdisk="images/old/ipa")
        task.driver.boot.validate(task)
        self.assertEqual([], self.doubts(task))
        task.driver.boot.prepare_ramdisk(task, {})
        place = f"ingot-boot/{task.node.uuid}"
        self.assertEqual(
            (f"http://192.0.2.5:6180/{place}/kernel-ipa", f"http://192.0.2.5:6180/{place}/initrd-ipa"),
            (task.node.boot_config["kernel"], task.node.boot_config["initrd"]),
        )
        for link, content in (("kernel-ipa", "images/ipa"), ("initrd-ipa", "images/old/ipa")):
            self.assertEqual(content, (html / place / link).read_text())
        task.driver.boot.clean_up_ramdisk(task)
        self.assertFalse((html / place).exists())

    def test_files_elsewhere_are_not_published(self) -> None:
        for name in ("secret", "images/../secret"):
            task, html = self.published(kernel=name, ramdisk="images/ipa")
            for call in (task.driver.boot.validate, lambda task: task.driver.boot.prepare_ramdisk(task, {})):
                error = self.assertRaises(errors.Invalid, call, task)
                self.assertIn("file_url_allowed_paths", error.message)
            self.assertEqual([], list(html.rglob("*secret*")))
        (html.parent / "images" / "link").symlink_to(html.parent / "secret")
        task.set(driver_info={**task.node.driver_info, "deploy_kernel": f"file://{html.parent}/images/link"})
        self.assertRaises(errors.Invalid, task.driver.boot.validate, task)

    def test_a_file_that_is_not_there_is_named(self) -> None:
        task, _html = self.published(kernel="images/none", ramdisk="images/ipa")
        task.driver.boot.validate(task)
        error = self.assertRaises(errors.ImageError, task.driver.boot.prepare_ramdisk, task, {})
        self.assertIn("images/none on this conductor's host", error.message)

    def test_what_the_conductor_cannot_judge_is_noted_until_the_agent_has_ended(self) -> None:
        for name, reason in (
            ("broken", "HTTP 503"),
            ("closed", "HTTP 403"),
            ("http://user:hush@127.0.0.1:1/kernel", "takes no connection"),
            ("http://no-such-host.invalid/kernel", "name of its host is not known"),
        ):
            task = self.boots(name)
            (doubt,) = self.doubts(task)
            self.assertIn("driver_info.deploy_kernel", doubt)
            self.assertIn(reason, doubt)
            self.assertNotIn("hush", doubt)
            task.driver.boot.clean_up_ramdisk(task)
            self.assertNotIn("boot_file_doubts", task.node.driver_internal_info)
        self.assertEqual([], self.doubts(self.boots("tftp://10.0.0.1/kernel")))

    def test_users_addresses_lead_only_where_they_may(self) -> None:
        task = self.boots("other")
        task.conf.clear_override("url_denied_networks", group="deploy")
        self.assertIn("may not be reached", self.doubts(task)[0])
        self.assertEqual(0, self.server.asked["/other"])

    def test_a_storm_asks_once(self) -> None:
        for _ in range(100):
            self.assertEqual([], self.doubts(self.boots("kernel")))
        self.assertEqual({"/kernel": 1, "/initrd": 1}, dict(self.server.asked))

    def test_that_it_is_not_there_is_asked_anew(self) -> None:
        for count in (1, 2):
            self.refused(self.boots("other"))
            self.assertEqual(count, self.server.asked["/other"])

    def test_a_slow_server_keeps_neither_worker_nor_lock(self) -> None:
        self.patch(fetches, "_PATIENCE", 0.05)
        server = SlowServer(b"")
        self.addCleanup(server.stop)
        task = self.boots(f"{server.url}/kernel")
        task.conf.set_override("webserver_connection_timeout", 1)
        answer = task.driver.boot.check_ramdisk(task)
        self.assertEqual(("file", True), (answer.waits_for, answer.abortable))
        doubts: list[str] = conductor_case.eventually(
            lambda: (
                task.driver.boot.check_ramdisk(task) == results.DONE
                and task.node.driver_internal_info["boot_file_doubts"]
            ),
            "it is given up",
        )
        self.assertIn("not there within 1 s", doubts[0])

    def test_it_can_be_switched_off(self) -> None:
        task = self.boots("other")
        task.conf.set_override("check_boot_files", False, group="pxe")
        self.assertEqual([], self.doubts(task))


class Flows(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.conf.set_override("enabled_deploy_interfaces", ["direct", "fake"])
        self.conf.set_override("enabled_boot_interfaces", ["ipxe", "fake"])
        self.conf.set_override("enabled_inspect_interfaces", ["agent", "fake"])
        self.conf.set_override("endpoint_override", "http://10.0.0.1:6385/", group="service_catalog")
        self.conf.set_override("url_denied_networks", [], group="deploy")

    def test_a_deployment_a_cleaning_and_an_inspection_fail_before_the_machine_boots(self) -> None:
        server = Server(kernel=200)
        self.addCleanup(server.stop)
        files = {"deploy_kernel": f"{server.url}/kernel", "deploy_ramdisk": f"{server.url}/initrd"}
        image = {"image_source": "http://images/one.raw", "image_checksum": "a" * 64}
        for flow, begins, ends in (
            ("deploy", states.DEPLOYING, states.DEPLOYFAIL),
            ("automated_clean", states.CLEANING, states.CLEANFAIL),
            ("inspect", states.INSPECTING, states.INSPECTFAIL),
        ):
            node = database.make_node(
                self.db, deploy_interface="direct", boot_interface="ipxe", inspect_interface="agent",
                driver_info=files, instance_info=image,
            )  # fmt: skip
            database.make_port(self.db, node, address=f"52:54:00:00:00:{len(flow):02x}")
            after = self.run_flow(node, flow, begins)
            self.assertEqual(ends, after.provision_state, after.last_error)
            self.assertIn(f"driver_info.deploy_ramdisk: {server.url}/initrd: it answers HTTP 404", after.last_error)
            self.assertEqual({}, after.boot_config)
