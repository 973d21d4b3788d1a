"""What messages and answers show of secrets: nothing."""

import io
import logging

import testtools
from oslo_utils import strutils

from ingot.common import errors, masking


class Shown(testtools.TestCase):
    def test_what_is_no_secret_is_shown_as_it_is(self) -> None:
        for value in ("a", 7, None, ["a"], {"a": 1}):
            self.assertEqual(repr(value), masking.describe_value("extra", value))

    def test_what_is_long_is_cut_in_the_middle(self) -> None:
        shown = masking.describe_value("name", "a" * 5000 + "z")
        self.assertLess(len(shown), 200)
        self.assertRegex(shown, r"^'a+ \.\.\. a+z'$")

    def test_of_what_is_very_long_only_the_length_is(self) -> None:
        """To look for secrets in all of it could take long, and strangers send such texts."""
        for secret in ("http://a:" + "s3cret" * 10_000 + "@h", "?token=" + "s3cret" * 10_000):
            self.assertEqual(f"['... {len(secret)} characters ...']", masking.describe_value("a", [secret]))
        many = [{str(number): "x" for number in range(10_000)}]
        self.assertLess(len(masking.describe_value("a", many * 10_000)), 200)

    def test_secrets_are_not_shown_wherever_they_are(self) -> None:
        for field in ("rescue_password", "driver_info.ipmi_password", "driver_info", "instance_info", "configdrive"):
            self.assertEqual(masking.MASK, masking.describe_value(field, "s3cret"))
        self.assertEqual(
            "{'a': {'password': '******'}}", masking.describe_value("extra", {"a": {"password": "s3cret"}})
        )

    def test_what_is_beside_them_is(self) -> None:
        self.assertEqual("'x'", masking.describe_value("driver_info.ipmi_port", "x"))

    def test_a_refusal_shows_its_value_like_that(self) -> None:
        refusal = errors.Invalid(field="agent_token", value="s3cret", allowed="Send the token.")
        self.assertEqual("Invalid agent_token: ******. Send the token.", refusal.message)
        refusal = errors.UnknownStep(field="clean step", value="a.b", allowed="There is none.")
        self.assertEqual("Invalid clean step: 'a.b'. There is none.", refusal.message)


class Keys(testtools.TestCase):
    def test_of_secrets_are_at_least_those_of_oslo_utils(self) -> None:
        for name in strutils._SANITIZE_KEYS:
            for key in (name, f"my_{name.upper()}_2"):
                self.assertTrue(masking.is_secret(key), key)
        self.assertEqual({"a": {"sslkey": "***"}}, strutils.mask_dict_password({"a": {"sslkey": "x"}}))

    def test_of_snmp_and_of_bmcs_are_too(self) -> None:
        for key in (
            *("snmp_auth_key", "snmp_priv_key", "snmp_community", "snmp_community_read", "snmp_community_write"),
            *("irmc_snmp_auth_password", "irmc_snmp_priv_password", "ipmi_hex_kg_key", "redfish_password", "api_key"),
        ):
            self.assertTrue(masking.is_secret(key), key)

    def test_are_known_however_they_are_spelled(self) -> None:
        for key in ("private-key", "privateKey", "apikey", "X-Auth-Key", "Authorization", "Cookie", "SNMP-Community"):
            self.assertTrue(masking.is_secret(key), key)

    def test_of_other_things_are_none(self) -> None:
        for key in (
            *("ipmi_address", "ipmi_username", "snmp_user", "snmp_auth_protocol", "snmp_version", "redfish_verify_ca"),
            *("deploy_kernel", "image_source", "bypass", "keyboard", "root_device", "capabilities"),
        ):
            self.assertFalse(masking.is_secret(key), key)


class Urls(testtools.TestCase):
    def test_are_shown_without_passwords(self) -> None:
        for url, shown in (
            ("https://ada:s3cret@host/image.raw", "https://ada:******@host/image.raw"),
            ("http://ada:s3c@ret@host", "http://ada:******@host"),
            ("http://:s3cret@[::1]:8080/x", "http://:******@[::1]:8080/x"),
            ("x (ftp://a:s3cret@h/) y http://b:s3cret@i/ z", "x (ftp://a:******@h/) y http://b:******@i/ z"),
            ("https://h/x?a=1&temp_url_sig=s3cret&b=2", "https://h/x?a=1&temp_url_sig=******&b=2"),
            ("https://h/x?X-Amz-Signature=s3cret", "https://h/x?X-Amz-Signature=******"),
            ("https://h/x?sv=1&sig=s3cret&b=2", "https://h/x?sv=1&sig=******&b=2"),
            ("https://h/x#access_token=s3cret", "https://h/x#access_token=******"),
            ("http://o'ada:it's\"s3cret\"<@h/x", "http://o'ada:******@h/x"),
            ("http://ada:s3/c?r#et@h/x: not a port", "http://ada:******@h/x: not a port"),
            (f"http://{'a' * 250}:{'s3cret' * 300}@h/", f"http://{'a' * 250}:******@h/"),
            ("http://h/api/boot/media/n0de/s3cret/boot.iso x", "http://h/api/boot/media/n0de/******/boot.iso x"),
            ("'/boot/images/n0de/s3cret/ident'", "'/boot/images/n0de/******/ident'"),
            ("/v1/commands/?agent_token=s3cret HTTP/1.1", "/v1/commands/?agent_token=****** HTTP/1.1"),
        ):
            self.assertEqual(shown, masking.mask_text(url))
            self.assertEqual({"image_source": [shown]}, masking.mask({"image_source": [url]}))

    def test_without_secrets_are_shown_as_they_are(self) -> None:
        for url in (
            *("http://host:8080/a@b", "http://[::1]:8080/a@b", "'http://host:8080', a@b", "http://host:/a@b"),
            *("https://host/x?a=1", "https://host/x?design=1", "file:///images/a.raw", "rabbit://me@host/", "a:b@c"),
            *("http://h/boot/grub/grub.cfg-01-aa", "/boot/media/<node>/<ticket>/boot.iso", "http://files/boot/media/a"),
        ):
            self.assertEqual(url, masking.mask_text(url))

    def test_are_hidden_in_every_error(self) -> None:
        for error in (
            errors.ImageError("http://a:s3cret@h/sums has no checksum"),
            errors.HardwareError(what="GET http://a:s3cret@h/x", reason="404"),
            errors.Invalid(
                field="instance_info.image_source", value="http://a:s3cret@h/", allowed="http://a:s3cret@h/"
            ),
            errors.unexpected_error(ValueError("http://a:s3cret@h/")),
        ):
            self.assertNotIn("s3cret", str(error))
            self.assertIn("a:******@h", error.message)

    def test_are_hidden_in_logs_and_their_tracebacks(self) -> None:
        written = io.StringIO()
        handler = logging.StreamHandler(written)
        handler.setFormatter(masking.Formatter(logging.Formatter("%(levelname)s %(message)s")))
        logger = logging.getLogger(f"{__name__}.urls")
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)
        try:
            raise ValueError("http://a:s3cret@h/traceback")
        except ValueError:
            logger.exception("Fetching %s", "http://a:s3cret@h/message")
        self.assertNotIn("s3cret", written.getvalue())
        for text in ("ERROR Fetching http://a:******@h/message", "ValueError: http://a:******@h/traceback"):
            self.assertIn(text, written.getvalue())

    def test_are_looked_for_in_linear_time(self) -> None:
        """It would take minutes otherwise."""
        for piece in ("a.", "x://", "x://a:", "x://a:b?", "?a", "?a=", "&token", "#sig", "a-b://c:d"):
            text = "=://@" + piece * 500_000
            self.assertEqual(text, masking.mask_text(text))
