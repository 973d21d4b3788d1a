"""Secrets of machines, on the embedded default: in no file but that of the key, and in no answer."""

import testtools

from tests.functional.deployment import lab

PASSWORD = "hunter2-of-the-bmc"
IN_URL = "another-word-that-is-nowhere-else"


class TestSecrets(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bench = self.useFixture(lab.Lab(rack={"password": PASSWORD}))
        self.key = self.bench.directory / "secrets.key"
        self.uuid = self.bench.enroll(driver_info={**self.bench.access(), "ipmi_password": PASSWORD})

    def find_in_files(self, word: str) -> list[str]:
        """Return the names of Ingot's files that have a word in them."""
        files = [path for path in self.bench.directory.glob("*") if path.is_file() and path.suffix != ".conf"]
        return sorted(path.name for path in files if word.encode() in path.read_bytes())

    def test_passwords_of_bmcs_are_used_and_in_no_file(self) -> None:
        self.assertEqual(0o600, self.key.stat().st_mode & 0o777)
        self.bench.make_available(self.uuid)
        self.assertEqual("******", self.bench.user.node(self.uuid)["driver_info"]["ipmi_password"])
        self.assertEqual(0, self.bench.process.stop())
        self.assertEqual([], self.find_in_files(PASSWORD))

    def test_without_its_key_the_service_does_not_start_and_nothing_is_lost(self) -> None:
        self.bench.process.stop()
        away = self.key.rename(self.key.with_suffix(".away"))
        self.assertRaises(AssertionError, self.bench.process.start().wait)
        log = self.bench.process.log.read_text()
        self.assertIn("There is no such file", log)
        self.assertNotIn("Traceback", log)
        self.assertFalse(self.key.exists())
        away.rename(self.key)
        self.bench.process.start()
        self.bench.wait_until_served()
        self.bench.make_available(self.uuid)

    def test_passwords_of_urls_are_in_no_log_and_in_no_answer(self) -> None:
        self.bench.make_available(self.uuid)
        secret = self.bench.files.url.replace("http://", f"http://ada:{IN_URL}@")
        wrong = {"image_checksum": f"{secret}/none", "image_os_hash_value": None, "image_os_hash_algo": None}
        self.bench.set_image(self.uuid, **wrong, image_source=f"{secret}/image.raw")
        answer = self.bench.user.request("PUT", f"/v1/nodes/{self.uuid}/states/provision", {"target": "active"})
        if answer.status_code == 202:
            self.bench.reach(self.uuid, "deploy failed")
        self.assertIn(
            "ada:******@", answer.text if answer.status_code != 202 else self.bench.user.node(self.uuid)["last_error"]
        )
        for path in ("", "/history?detail=true"):
            self.assertNotIn(IN_URL, str(self.bench.user.get(f"/v1/nodes/{self.uuid}{path}")))
        self.assertNotIn(IN_URL, str(self.bench.user.get(f"/ingot/v1/nodes/{self.uuid}/timeline")))
        self.assertEqual([], [name for name in self.find_in_files(IN_URL) if name.endswith(".log")])
