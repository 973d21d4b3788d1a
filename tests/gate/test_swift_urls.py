"""A machine gets its image of a real Glance by a URL that Ingot has signed, and that Swift's own middleware judges."""

import re
from typing import ClassVar

import requests
import testtools

from ingot.common.conf import opts
from ingot.drivers.images import swift_urls
from ingot.rack import ports
from tests import database
from tests.functional.deployment import lab
from tests.gate import environments, imaging

REQUIREMENTS = ("swift>=2.35",)
PROGRAM = environments.ROOT / "tests" / "gate" / "programs" / "swift_door.py"
ACCOUNT, KEY = "AUTH_a422b291f32f46748b7d7c9e8958f5d3", "key of the gate"


class TestSwiftURLs(testtools.TestCase):
    glance: ClassVar[imaging.Glance]
    bench: ClassVar[lab.Lab]
    signing: ClassVar[dict[str, str]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        programs = environments.cached("swift", *REQUIREMENTS)
        cls.glance = cls.enterClassContext(imaging.Glance())
        port = ports.tcp()
        url = f"http://127.0.0.1:{port}"
        command = [str(programs / "python"), str(PROGRAM), str(port), str(cls.glance.directory / "images")]
        door = lab.Process([*command, ACCOUNT, KEY], cls.glance.directory / "swift.log")
        cls.addClassCleanup(door.stop)
        door.start()

        def answers() -> bool:
            return requests.get(f"{url}/v1/{ACCOUNT}/glance/x", timeout=lab.PATIENCE).status_code > 0

        lab.eventually(answers, "Swift's door answers", lab.PATIENCE, door.log.read_text)
        cls.signing = {"swift_endpoint_url": url, "swift_account": ACCOUNT, "swift_temp_url_key": KEY}
        options = {
            "glance": {"auth_type": "none", "endpoint_override": cls.glance.url, **cls.signing},
            "agent": {"image_download_source": "swift"},
        }
        cls.bench = cls.enterClassContext(lab.Lab(options=options))

    def test_a_machine_gets_its_image_from_swift(self) -> None:
        image = imaging.upload(self.glance.connect(), "system", self.bench.image)
        node = self.bench.enroll()
        self.bench.make_available(node)
        self.bench.user.patch(f"/v1/nodes/{node}", {"/instance_info": {"image_source": image}})
        self.bench.user.provision(node, "active")
        self.bench.reach(node, "active")
        self.assertTrue(self.bench.holds_image(0))
        door = (self.glance.directory / "swift.log").read_text()
        fetched = rf'"GET /v1/{ACCOUNT}/glance/{image}\?temp_url_sig=(\w+)&temp_url_expires=\d+ [^"]*" 200'
        (signature,) = re.findall(fetched, door)
        log = (self.bench.directory / "conductor-0.log").read_text()
        for secret in (KEY, signature):
            self.assertNotIn(secret, log)

    def test_swift_refuses_what_is_changed_or_too_late(self) -> None:
        image = imaging.upload(self.glance.connect(), "refused", b"image")
        conf = database.configuration("sqlite://")
        opts.use_service(conf, "glance")
        for name, value in self.signing.items():
            conf.set_override(name, value, group="glance")
        url = swift_urls.build(conf, image)
        self.assertEqual(b"image", requests.get(url, timeout=lab.PATIENCE).content)
        for other in (url.replace(image, image[::-1]), f"{url}0", url.replace("temp_url_sig=", "temp_url_sig=0")):
            self.assertEqual(401, requests.get(other, timeout=lab.PATIENCE).status_code, other)
        self.assertEqual(401, requests.put(url, data=b"other", timeout=lab.PATIENCE).status_code)
