"""What nodes may say of their Redfish BMC: what is understood, and how the rest is refused."""

import tempfile
from typing import Any

import testtools

from ingot.common import errors
from ingot.drivers.loading import factory
from ingot.drivers.redfish import address
from tests.unit.drivers import fakes

LISTED = {
    *("redfish_address", "redfish_system_id", "redfish_username", "redfish_password", "redfish_verify_ca"),
    *("redfish_auth_type", "redfish_tls_minimum_version", "redfish_tls_ciphers"),
}


class AddressTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.conf = fakes.configuration(enabled_hardware_types=["redfish"])

    def read(self, **info: Any) -> address.Address:
        return address.read_address({"redfish_address": "bmc.example", **info}, self.conf)

    def test_what_redfish_nodes_can_have_is_listed(self) -> None:
        listed = factory.Hardware(self.conf).properties("redfish")
        self.assertEqual(LISTED, {name for name in listed if name.startswith("redfish_")})
        self.assertIn("Required", listed["redfish_address"])

    def test_addresses_with_and_without_scheme(self) -> None:
        for given, where, root in (
            ("bmc.example", "https://bmc.example", "/redfish/v1/"),
            ("192.0.2.7:8443", "https://192.0.2.7:8443", "/redfish/v1/"),
            ("http://192.0.2.7", "http://192.0.2.7", "/redfish/v1/"),
            ("https://bmc:443/", "https://bmc", "/redfish/v1/"),
            ("2001:db8::7", "https://[2001:db8::7]", "/redfish/v1/"),
            ("https://[2001:db8::7]:8443", "https://[2001:db8::7]:8443", "/redfish/v1/"),
            ("https://proxy/rack/7/", "https://proxy", "/rack/7/redfish/v1/"),
            ("https://bmc/redfish/v1", "https://bmc", "/redfish/v1/"),
        ):
            found = self.read(redfish_address=given)
            self.assertEqual((where, root), (found.where, found.root), given)

    def test_a_machine_may_be_named_or_not(self) -> None:
        for given, found in (
            (None, None), ("/redfish/v1/Systems/1/", "/redfish/v1/Systems/1"), ("/redfish/v1/Systems/ä", "%C3%A4"),
            ("", None), ("/", None), ("/redfish/v1/", None),  # Metal3 sends what follows the BMC's address
        ):  # fmt: skip
            self.assertEqual(found, (self.read(redfish_system_id=given).system or "")[-len(found or "") :] or None)

    def test_what_cannot_be_used_is_refused_with_key_value_and_what_is_allowed(self) -> None:
        for key, value, allowed in (
            ("redfish_address", "ftp://bmc", "http or https"),
            ("redfish_address", "ftp://bmc:443", "http or https"),
            ("redfish_address", "https://user:x@bmc", "without user"),
            ("redfish_address", "https://bmc:99999", "URL"),
            ("redfish_address", "https://bmc/?a=b", "query"),
            ("redfish_address", "bmc\r\nHost: other", "URL"),
            ("redfish_address", 7, "URL"),
            ("redfish_address", "https://:443", "URL"),
            ("redfish_address", "https://bmc:0", "URL"),
            ("redfish_address", "bmc..example", "URL"),
            ("redfish_address", f"{'b' * 64}.example", "URL"),
            ("redfish_system_id", "Systems/1", "begins with /"),
            ("redfish_system_id", "/redfish/v1/Systems/1 HTTP/1.1\r\n", "begins with /"),
            ("redfish_username", 7, "string"),
            ("redfish_password", {"a": "secret"}, "string"),
            ("redfish_auth_type", "digest", "auto, session, basic"),
            ("redfish_verify_ca", "/nowhere/ca.pem", "true, false, or the path"),
            ("redfish_verify_ca", 7, "true, false, or the path"),
            ("redfish_tls_minimum_version", "1.0", "1.1, 1.2, 1.3"),
            ("redfish_tls_ciphers", "NONE-OF-THESE", "cipher suites"),
        ):
            error = self.assertRaises(errors.Invalid, self.read, **{key: value})
            self.assertIn(f"driver_info.{key}", error.message)
            self.assertIn(allowed, error.message)
            self.assertNotIn("secret", error.message)
        missing = self.assertRaises(errors.MissingParameter, address.read_address, {}, self.conf)
        self.assertIn("redfish_address", missing.message)

    def test_what_a_node_does_not_say_the_configuration_does(self) -> None:
        place = tempfile.gettempdir()
        for name, value in (("auth_type", "basic"), ("verify_ca", place), ("tls_minimum_version", "1.3")):
            self.conf.set_override(name, value, "redfish")
        found = self.read()
        self.assertEqual(("basic", address.Trust(place, "1.3", None)), (found.auth_type, found.trust))
        own = self.read(redfish_auth_type="session", redfish_verify_ca="false", redfish_tls_minimum_version="1.2")
        self.assertEqual(("session", address.Trust(False, "1.2", None)), (own.auth_type, own.trust))
        self.conf.set_override("verify_ca", "/nowhere", "redfish")
        self.assertIn("[redfish] verify_ca", self.assertRaises(errors.Invalid, self.read).message)

    def test_a_password_is_in_no_representation(self) -> None:
        found = self.read(redfish_username="operator", redfish_password="correct horse")
        for text in (repr(found), str(found), f"{found}", found.where):
            self.assertNotIn("correct horse", text)
