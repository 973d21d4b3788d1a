"""The vendor interface: what only one vendor's machines can do."""

from ingot.drivers.interfaces.base import BaseInterface


class VendorInterface(BaseInterface):
    """Implementations declare steps; the flows know nothing else of them."""

    kind = "vendor"
