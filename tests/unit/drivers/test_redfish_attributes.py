"""What registries say of BIOS attributes, and what of it fits into the columns of settings."""

import testtools

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


BOUNDS = ("lower_bound", "upper_bound", "max_length")
