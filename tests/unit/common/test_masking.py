"""What messages and answers show of secrets: nothing."""

import testtools

from ingot.common import errors, masking


class Shown(testtools.TestCase):
    def test_what_is_no_secret_is_shown_as_it_is(self) -> None:
        for value in ("a", 7, None, ["a"], {"a": 1}):
            self.assertEqual(repr(value), masking.describe_value("extra", value))

    def test_what_is_long_is_cut_in_the_middle(self) -> None:
        shown = masking.describe_value("name", "a" * 5000 + "z")
        self.assertLess(len(shown), 200)
        self.assertRegex(shown, r"^'a+ \.\.\. a+z'$")

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
