"""Parts of the Redfish face that need no port: routes, vendors, certificates, images, faults of requests."""

import io
import tempfile
from pathlib import Path

import pycdlib
import testtools
from cryptography import x509

from ingot.rack import iso, tls, vendors
from ingot.rack.config import ConfigError, MachineOverride, RackConfig, machine_specs
from ingot.rack.faults import FaultError, Faults
from ingot.rack.media import Media, Medium
from ingot.rack.redfish import attributes, messages, resources
from ingot.rack.redfish.routing import Route, Router


class RouterTest(testtools.TestCase):
    def test_variable_parts_are_found_by_name(self) -> None:
        router = Router((Route("GET", "/Systems/{system}/Drives/{disk}", lambda call: {"x": 1}),))
        found = router.find("/redfish/v1/Systems/a/Drives/b/")
        assert found is not None
        self.assertEqual({"system": "a", "disk": "b"}, found[1])
        for path in ("/redfish/v1/Systems", "/redfish/v1/Systems/a/Drives/b/c", "/x"):
            self.assertIsNone(router.find(path))

    def test_no_method_of_a_resource_is_there_twice(self) -> None:
        keys = [(route.method, route.root + route.path) for route in resources.ROUTES]
        self.assertEqual(len(keys), len(set(keys)))


class VendorsTest(testtools.TestCase):
    def test_each_can_start_a_machine_from_its_media(self) -> None:
        for name, vendor in vendors.VENDORS.items():
            self.assertIn("cdrom", {*vendor.boot_targets.values(), *vendor.shown_as}, name)
            self.assertTrue(any(drive.kind == "cd" for drive in vendor.drives.values()), name)
            self.assertLessEqual(set(vendor.reset_types), set(vendors.RESET_TYPES))

    def test_a_machine_may_have_another_than_the_rack(self) -> None:
        config = RackConfig(redfish_vendor="ilo", machine=(MachineOverride(redfish_vendor="dell"),))
        self.assertEqual(["dell", "ilo", "ilo"], [spec.redfish_vendor for spec in machine_specs(config)])
        self.assertRaisesRegex(ConfigError, "'acme' is not one of generic, ilo", RackConfig, redfish_vendor="acme")


class RegistriesTest(testtools.TestCase):
    def test_they_say_how_many_arguments_a_message_has(self) -> None:
        found = messages.registry()["Messages"]["ActionParameterMissing"]
        self.assertEqual((2, ["string", "string"]), (found["NumberOfArgs"], found["ParamTypes"]))

    def test_defaults_are_values_that_can_be_set(self) -> None:
        writable = {name: one.default for name, one in attributes.ATTRIBUTES.items() if not one.read_only}
        attributes.check(writable)


class FaultsTest(testtools.TestCase):
    def test_a_fault_is_for_requests_that_it_names(self) -> None:
        faults = Faults()
        faults.order("redfish_busy", {"retry_after": 1, "method": "POST", "path": "Reset"}, times=1)
        for method, path in (("GET", "/a/Reset"), ("POST", "/a/b")):
            self.assertIsNone(faults.take_request("redfish_busy", method, path))
        self.assertEqual(1, faults.take_request("redfish_busy", "POST", "/a/Reset")["retry_after"])
        self.assertIsNone(faults.take_request("redfish_busy", "POST", "/a/Reset"))

    def test_what_cannot_be_ordered(self) -> None:
        for name, value, text in (
            ("redfish_busy", {"method": "POST"}, "{retry_after} or {retry_after, method}"),
            ("redfish_error", {"status": "500"}, "value must be {status}"),
            ("redfish_certificate", "odd", "expired, wrong-name, unknown-issuer"),
            ("redfish_silent", "yes", "takes no value"),
        ):
            self.assertRaisesRegex(FaultError, text, Faults().order, name, value)


class FilesTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_certificate_is_kept_while_it_is_good(self) -> None:
        file = self.directory / "a.pem"
        _, first = tls.keep(file, "127.0.0.1")
        self.assertEqual(first, tls.keep(file, "127.0.0.1")[1])
        self.assertNotEqual(first, tls.keep(file, "127.0.0.2")[1])
        self.assertEqual(0o600, file.stat().st_mode & 0o777)

    def test_flawed_ones_have_the_same_issuer_but_for_the_one_that_has_not(self) -> None:
        file = self.directory / "redfish.pem"
        tls.keep(file, "127.0.0.1")
        for flaw in tls.FLAWS:
            tls.create_flawed(self.directory, "127.0.0.1", flaw, file)
            found = x509.load_pem_x509_certificate((self.directory / f"redfish-{flaw}.pem").read_bytes())
            self.assertEqual(flaw == "unknown-issuer", found.issuer == found.subject, flaw)

    def test_media_survive_a_restart_and_their_passwords_stay_with_the_owner(self) -> None:
        media = Media(self.directory)
        media.insert("Stick", Medium("http://a/b.img", kind="usb"))
        media.insert("Cd", Medium("http://a/b.iso", username="u", password="p"))
        again = Media(self.directory)
        self.assertEqual(Medium("http://a/b.iso", username="u", password="p"), again.bootable())
        self.assertNotIn("password", again.public()["Cd"])
        self.assertEqual(0o600, (self.directory / "media.json").stat().st_mode & 0o777)
        again.eject("Cd")
        again.eject("Stick")
        self.assertIsNone(again.bootable())

    def test_kernel_arguments_are_those_of_the_first_loader(self) -> None:
        for name, text in (
            ("/ISOLINUX.CFG;1", "default x\n  append initrd=i ipa-api-url=http://a?b quiet\n"),
            ("/GRUB.CFG;1", "menuentry x {\n  linuxefi /vmlinuz 'ipa-api-url=http://a?b' quiet initrd=i\n}\n"),
        ):
            image, content = pycdlib.PyCdlib(), text.encode()
            image.new()
            folder = "/ISOLINUX" if "ISOLINUX" in name else "/BOOT/GRUB"
            for part in ("/BOOT", "/BOOT/GRUB", "/ISOLINUX"):
                image.add_directory(part)
            image.add_fp(io.BytesIO(content), len(content), folder + name)
            path = self.directory / "x.iso"
            image.write(str(path))
            image.close()
            self.assertEqual({"initrd": "i", "ipa-api-url": "http://a?b", "quiet": ""}, iso.read_arguments(path))

    def test_what_is_no_image_to_start_from(self) -> None:
        path = self.directory / "x.iso"
        path.write_bytes(b"\0" * 50000)
        self.assertRaisesRegex(iso.IsoError, "no ISO 9660", iso.read_arguments, path)
        image = pycdlib.PyCdlib()
        image.new()
        image.write(str(path))
        image.close()
        self.assertRaisesRegex(iso.IsoError, "none of the loaders", iso.read_arguments, path)
