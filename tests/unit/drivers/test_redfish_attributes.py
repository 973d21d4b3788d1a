"""What registries say of BIOS attributes, and what of it fits into the columns of settings."""

import testtools

from ingot.common import errors
from ingot.drivers.redfish import attributes


class AttributesTest(testtools.TestCase):
    def test_bounds_may_have_64_bits_and_larger_ones_are_left_out(self) -> None:
        about = {"Type": "Integer", "LowerBound": -(2**63) + 1, "UpperBound": 2**40, "MaxLength": 10}
        shown = attributes.describe("Base", 7, about)
        self.assertEqual((about["LowerBound"], 2**40, 10), tuple(shown[one] for one in BOUNDS))
        shown = attributes.describe("Base", 7, {**about, "UpperBound": 2**64 - 1, "MaxLength": 2**32})
        self.assertEqual((about["LowerBound"], None, None), tuple(shown[one] for one in BOUNDS))
        self.assertEqual("7", shown["value"])

    def test_what_has_another_type_than_redfish_says_is_left_out(self) -> None:
        about = {"Type": 5, "LowerBound": "0", "UpperBound": True, "MaxLength": 1.5, "ReadOnly": "no"}
        shown = attributes.describe("Boot", None, about)
        self.assertEqual({None}, {shown[one] for one in (*BOUNDS, "attribute_type", "read_only", "value")})

    def test_values_of_users_become_those_of_the_machine(self) -> None:
        for value, current, about, expected in (
            ("true", False, {}, True),
            ("7", 1, {}, 7),
            (7, 1, {"LowerBound": 7, "UpperBound": 7}, 7),
            (None, "x", {}, ""),
            ("Uefi", "Bios", {"Type": "Enumeration", "Value": [{"ValueName": "Uefi"}]}, "Uefi"),
            ("Uefi", "Bios", {"Type": "Enumeration", "MaxLength": 1}, "Uefi"),
        ):
            found = attributes.parse_settings([{"name": "A", "value": value}], {"A": current}, {"A": about})
            self.assertEqual({"A": expected}, found)

    def test_each_value_that_is_refused_says_what_it_can_be(self) -> None:
        for value, current, about, message in (
            ("1", 1, {"ReadOnly": True}, "A: it can only be read."),
            ("yes", True, {}, "A: it can be true or false."),
            (1.5, 1, {}, "A: it must be an integer."),
            (True, 1, {}, "A: it must be an integer."),
            (5, 1, {"LowerBound": 6}, "A: it must be at least 6."),
            (5, 1, {"LowerBound": 1, "UpperBound": 4}, "A: it must be 1 to 4."),
            ("abc", "x", {"MinLength": 4, "MaxLength": "no"}, "A: it must have at least 4 characters."),
            ("abc", "x", {"MaxLength": 2}, "A: it must have at most 2 characters."),
            (
                "C",
                "A",
                {"Type": "Enumeration", "Value": [{"ValueName": "A"}, {"ValueName": "B"}]},
                "A: it can be A, B.",
            ),
        ):
            settings = [{"name": "A", "value": value}]
            refused = self.assertRaises(
                errors.Invalid, attributes.parse_settings, settings, {"A": current}, {"A": about}
            )
            self.assertIn(message, refused.message)


BOUNDS = ("lower_bound", "upper_bound", "max_length")
