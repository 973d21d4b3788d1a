"""The kinds of BMC that Metal3 knows by the scheme of their address, and what a node of each is created with.

Read in metal3-io/baremetal-operator 02aa505, of 2026-08-20. Interfaces that are not here it leaves to their defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingot.rack.process import RackProcess

_REDFISH = {"firmware_interface": "redfish", "raid_interface": "redfish"}
_DELL = {
    **_REDFISH,
    **{f"{kind}_interface": "idrac-redfish" for kind in ("bios", "management", "power", "raid", "vendor")},
}


@dataclass(frozen=True)
class Scheme:
    """A kind of BMC.

    :param fast: whether hosts may be inspected out of band, which Metal3 calls fast inspection.
    :param media: whether Metal3 gives it finished images of the agent.
    :param always_system: whether the path of the address is sent even when it says nothing.
    :param vendor: whose habits the rack's BMC has.
    """

    name: str
    driver: str
    interfaces: Mapping[str, str]
    fast: bool = True
    media: bool = False
    always_system: bool = False
    vendor: str = "generic"

    @property
    def speaks_redfish(self) -> bool:
        return self.driver != "ipmi"


_IPMI = {"boot_interface": "ipxe", "raid_interface": "no-raid"}

SCHEMES = (
    Scheme("ipmi", "ipmi", _IPMI, fast=False),
    Scheme("libvirt", "ipmi", _IPMI, fast=False),
    Scheme("redfish", "redfish", {"boot_interface": "ipxe", **_REDFISH}),
    Scheme("ilo5-redfish", "redfish", {"boot_interface": "ipxe", **_REDFISH}, vendor="ilo"),
    Scheme("idrac-redfish", "idrac", {"boot_interface": "ipxe", **_DELL}, vendor="dell"),
    Scheme("redfish-virtualmedia", "redfish", {"boot_interface": "redfish-virtual-media", **_REDFISH}, media=True),
    Scheme(
        "ilo5-virtualmedia",
        "redfish",
        {"boot_interface": "redfish-virtual-media", **_REDFISH},
        media=True,
        vendor="ilo",
    ),
    Scheme(
        "idrac-virtualmedia",
        "idrac",
        {"boot_interface": "idrac-redfish-virtual-media", **_DELL},
        media=True,
        vendor="dell",
    ),
    Scheme(
        "redfish-uefihttp",
        "redfish",
        {"boot_interface": "redfish-https", **_REDFISH},
        media=True,
        always_system=True,
    ),
)


def read_access(scheme: Scheme, rack: RackProcess, index: int) -> dict[str, Any]:
    """Return the driver_info with which Metal3 reaches a machine of the rack, whose certificate it does not check."""
    machine = rack.machines[index]
    if not scheme.speaks_redfish:
        return {
            "ipmi_address": machine["bmc_address"],
            "ipmi_port": str(machine["bmc_port"]),
            "ipmi_username": "admin",
            "ipmi_password": "password",
            "ipmi_priv_level": "ADMINISTRATOR",
            "ipmi_verify_ca": False,
        }
    access = {
        "redfish_address": machine["redfish"]["address"],
        "redfish_username": "admin",
        "redfish_password": "password",
        "redfish_verify_ca": False,
    }
    if scheme.vendor != "generic":  # addresses of the others name the system, as most users' do
        access["redfish_system_id"] = machine["redfish"]["system"]
    elif scheme.always_system:
        access["redfish_system_id"] = ""
    return access
