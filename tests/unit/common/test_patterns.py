"""Regular expressions of operators end in linear time, and those that could not are refused with the reason."""

import testtools

from ingot.common import errors, patterns


class TestPatterns(testtools.TestCase):
    def refused(self, regex: object) -> str:
        return self.assertRaises(errors.Invalid, patterns.check, "regex", regex).message

    def test_whole_and_part(self) -> None:
        for regex, text, whole, part in (
            ("[a-c]+", "abc", True, True),
            ("b", "abc", False, True),
            ("(?i)DELL.*", "Dell Inc.", True, True),
            ("R[67]40$", "PowerEdge R640", False, True),
            (r"\bR640\b", "R6400", False, False),
        ):
            self.assertEqual(whole, patterns.match("regex", regex, text, whole=True), regex)
            self.assertEqual(part, patterns.match("regex", regex, text, whole=False), regex)

    def test_what_is_exponential_elsewhere_ends(self) -> None:
        """Python's own would take longer than the universe is old for each of these."""
        for regex in (r"([\w-]+\s?)+\d", "(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){12}b", r"\s*([^:,]+):"):
            for text in ("a" * 100_000 + "!", " " * 100_000):
                for whole in (True, False):
                    self.assertFalse(patterns.match("regex", regex, text, whole), regex)

    def test_what_re2_does_not_have_is_refused_with_the_reason(self) -> None:
        for regex, reason in (
            ("(?=a)b", "invalid perl operator"),
            (r"(a)\1", "invalid escape sequence"),
            (r"a\Z", "invalid escape sequence"),
            ("(a", "missing )"),
            ("[", "missing ]"),
        ):
            message = self.refused(regex)
            self.assertIn("Invalid regex", message)
            self.assertIn(reason, message)
            self.assertIn("look-around", message)

    def test_what_would_be_too_large_is_refused(self) -> None:
        self.assertIn("1000 characters", self.refused("a" * 1001))
        self.assertIn("1000 characters", self.refused(["a"]))
        self.assertIn("repetition", self.refused("(((a{100}){100}){100})"))
        self.assertIn("use fewer", self.refused("(abc{30}){30}" * 7))
        too_long = "a" * (patterns.LONGEST_TEXT + 1)
        error = self.assertRaises(errors.Invalid, patterns.match, "regex", "a", too_long, True)
        self.assertIn(f"{patterns.LONGEST_TEXT} characters", error.message)

    def test_texts_that_are_none(self) -> None:
        self.assertTrue(patterns.match("regex", "a.b", "a\ud800b", whole=True))
        self.assertTrue(patterns.match("regex", "a\0b", "a\0b", whole=True))
        self.assertTrue(patterns.match("regex", "[0-9]+", 12, whole=True))
        self.assertIn("Invalid regex", self.refused("\ud800"))
