"""Network boot with iPXE, which also starts volumes."""

from ingot.common import errors, iscsi
from ingot.drivers.pxe import network


class IPXEBoot(network.NetworkBoot):
    """The boot interface ``ipxe``."""

    def check_text(self, name: str, value: object) -> str:
        text = network.check_line(name, value)
        if iscsi.IPXE_OPERATORS & set(text.split()):
            raise errors.Invalid(field=name, value=value, allowed="A text without the words ||, && and ; of iPXE.")
        return text
