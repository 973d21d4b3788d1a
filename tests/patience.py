"""The patience of the driver kit, for the tests of Ingot itself: how long they wait before they give up."""

from ingot.driver_kit.patience import FACTOR, VARIABLE, seconds

__all__ = ["FACTOR", "VARIABLE", "seconds"]
