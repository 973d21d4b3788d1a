"""Keys for secrets: a file, its mistakes, and what is encrypted with it."""

import copy
import pathlib
import pickle
from typing import Any

import fixtures
import orjson
import testtools

from ingot.common import errors, keyring, masking

INFO: dict[str, Any] = {
    "ipmi_address": "10.0.0.1",
    "ipmi_password": "s3cret",
    "snmp_auth_key": 12345,
    "nested": [{"password": "s3cret", "user": "ada"}],
    "credentials": {"user": "ada", "key": "s3cret"},
    "api_key": None,
    "token": "",
}


class KeyringCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "more" / "secrets.key"
        self.ring = keyring.Keyring(self.path, seals=True)

    def rotate(self) -> None:
        """Add a key, and have it encrypt from now on."""
        self.ring.add_key()
        *former, new = self.path.read_text().splitlines()
        self.path.write_text("# rotated\n" + "\n".join((new, *former)) + "\n")


class Values(KeyringCase):
    def setUp(self) -> None:
        super().setUp()
        self.ring.add_key()

    def kept(self, value: Any) -> Any:
        """Return a value as it is read after it was written."""
        return self.ring.wrap(orjson.loads(orjson.dumps(self.ring.seal(value))))

    def test_secrets_are_encrypted_and_nothing_else_is(self) -> None:
        sealed = self.ring.seal(INFO)
        self.assertNotIn("s3cret", str(sealed))
        self.assertNotIn("12345", str(sealed))
        for key in ("ipmi_address", "api_key", "token"):
            self.assertEqual(INFO[key], sealed[key])
        self.assertEqual("ada", sealed["nested"][0]["user"])
        self.assertEqual(INFO, keyring.open_all(self.kept(INFO)))

    def test_what_was_read_is_not_shown_however_it_is_looked_at(self) -> None:
        read = self.kept(INFO)
        for shown in (str(read), repr(read["ipmi_password"]), f"{read}", str(masking.mask(read))):
            self.assertNotIn("s3cret", shown)
        self.assertRaises(TypeError, orjson.dumps, read)
        self.assertEqual("******", masking.mask({"renamed": read["ipmi_password"]})["renamed"])

    def test_what_was_read_is_written_as_it_was_and_can_be_copied_and_compared(self) -> None:
        sealed = self.ring.seal(INFO)
        read = self.ring.wrap(sealed)
        self.assertEqual(sealed, self.ring.seal(read))
        for twin in (copy.deepcopy(read), pickle.loads(pickle.dumps(read)), self.kept(INFO)):  # noqa: S301
            self.assertEqual(read, twin)
        self.assertEqual(read["ipmi_password"], "s3cret")
        self.assertNotEqual(read["ipmi_password"], "another")
        self.assertNotEqual(read["ipmi_password"], None)

    def test_a_text_that_looks_encrypted_is_not_taken_for_it(self) -> None:
        stolen = self.ring.seal(INFO)["ipmi_password"]
        for key in ("note", "ipmi_password"):
            self.assertEqual({key: stolen}, keyring.open_all(self.kept({key: stolen})))

    def test_a_former_key_decrypts_and_the_first_one_encrypts(self) -> None:
        before = self.ring.seal(INFO)
        self.rotate()
        self.assertEqual(INFO, keyring.open_all(self.ring.wrap(before)))
        again = self.ring.seal(self.ring.wrap(before))
        self.assertTrue(again["ipmi_password"].startswith(self.ring.mark))
        self.assertFalse(before["ipmi_password"].startswith(self.ring.mark))
        self.path.write_text(self.path.read_text().splitlines()[1])
        self.path.chmod(0o600)
        self.assertEqual(INFO, keyring.open_all(self.ring.wrap(again)))
        lost = self.assertRaises(keyring.SecretUnreadable, keyring.open_all, self.ring.wrap(before))
        for part in (str(self.path), "Nothing is lost", "[secrets] key_file"):
            self.assertIn(part, lost.message)
        self.assertEqual(before, self.ring.seal(self.ring.wrap(before)))

    def test_what_is_switched_off_is_still_read(self) -> None:
        before = self.ring.seal(INFO)
        plain = keyring.Keyring(self.path, seals=False)
        self.assertEqual(INFO, plain.seal(INFO))
        self.assertEqual(INFO, plain.seal(plain.wrap(before)))


class Files(KeyringCase):
    def refused(self) -> str:
        return self.assertRaises(errors.ConfigurationError, self.ring.check).message

    def test_are_for_their_owner_only(self) -> None:
        self.ring.add_key()
        self.assertEqual(0o600, self.path.stat().st_mode & 0o777)
        self.ring.check()
        self.path.chmod(0o644)
        self.assertIn("chmod 600", self.refused())

    def test_that_cannot_be_used_are_named_with_what_to_do(self) -> None:
        self.assertIn("ingot-dbsync add_key", self.refused())
        self.ring.add_key()
        good = self.path.read_text()
        for content, part in (("", "An empty file"), (f"{good}nonsense\n", "Line 2 is no key"), ("# a\n", "An empty")):
            self.path.write_text(content)
            message = self.refused()
            self.assertIn(part, message)
            self.assertIn(str(self.path), message)
            self.assertNotIn("nonsense", message)

    def test_that_are_gone_lose_nothing(self) -> None:
        self.ring.add_key()
        sealed = self.ring.seal(INFO)
        away = self.path.rename(self.path.with_suffix(".away"))
        self.assertRaises(keyring.SecretUnreadable, keyring.open_all, self.ring.wrap(sealed))
        self.assertRaises(errors.ServiceUnavailable, self.ring.seal, INFO)
        away.rename(self.path)
        self.assertEqual(INFO, keyring.open_all(self.ring.wrap(sealed)))

    def test_that_cannot_be_made_are_reported(self) -> None:
        self.path.parent.write_text("a file where a directory should be")
        message = self.assertRaises(errors.ConfigurationError, self.ring.add_key).message
        self.assertIn("cannot be written", message)


class Tokens(KeyringCase):
    def setUp(self) -> None:
        super().setUp()
        self.ring.add_key()

    def test_hold_a_value_that_others_can_neither_read_nor_make(self) -> None:
        token = self.ring.issue({"user": "ada"})
        self.assertEqual({"user": "ada"}, self.ring.redeem(token))
        self.assertNotIn("ada", token)
        for made_up in ("", "x", token[:-4], token.swapcase(), "\u00e9"):
            self.assertIsNone(self.ring.redeem(made_up), made_up)

    def test_are_no_secrets_and_secrets_are_no_tokens(self) -> None:
        sealed = self.ring.seal({"password": "x"})["password"]
        _mark, _name, key, secret = sealed.split("$")
        self.assertIsNone(self.ring.redeem(secret))
        token = self.ring.issue("x")
        self.assertRaises(keyring.SecretUnreadable, self.ring.open, f"{keyring.MARK}{key}${token}")

    def test_outlive_a_change_of_keys_as_secrets_do(self) -> None:
        token = self.ring.issue(1)
        self.rotate()
        self.assertEqual((1, 2), (self.ring.redeem(token), self.ring.redeem(self.ring.issue(2))))
        self.path.write_text(self.path.read_text().splitlines()[1] + "\n")
        self.assertIsNone(self.ring.redeem(token))

    def test_need_keys(self) -> None:
        self.path.unlink()
        self.assertRaises(errors.ServiceUnavailable, self.ring.issue, 1)
        self.assertRaises(errors.ServiceUnavailable, self.ring.redeem, "x")
