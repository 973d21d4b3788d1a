"""The hash of a password is the one that login programs expect."""

import testtools

from ingot.common import shadow


class Shadow(testtools.TestCase):
    def test_the_vectors_of_the_scheme(self) -> None:
        # The first is the author's; the others were made with the crypt(3) of the GNU C library.
        for password, salt, printed in (
            ("Hello world!", "saltstring",
             "svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1"),
            ("", "empty",
             "MWslJBrCvUsbDfvDkNQwBNtJFEGiZ5CHosSR8Ol/yMiSd9JINPGkSH4OfOOVEIp87YcT49Wr.Qp4a8bJCR6y2/"),
            ("pässword", "0123456789abcdef",
             "s9I74ZXk3feGZV/rChUgmgEl4QK9/3Octz9zj77x4eC9tlTgpXNif5yWkq6bgcZZU91DW7ZY6QTjPaM460tRj0"),
            ("a" * 130, "./.",
             "x8iwQ51elCZYotT7MlE.LTBhmj0ocLhNNrpU8eV6NavW9p/yc7uTIiUtceyYJVn6rbgZycYZj6ndUE3jk.qma0"),
        ):  # fmt: skip
            self.assertEqual(f"$6${salt}${printed}", shadow.hashed(password, salt), password)

    def test_each_has_a_salt_of_its_own(self) -> None:
        one, other = shadow.hashed("secret"), shadow.hashed("secret")
        self.assertNotEqual(one, other)
        self.assertRegex(one, r"^\$6\$[./0-9A-Za-z]{16}\$[./0-9A-Za-z]{86}$")
