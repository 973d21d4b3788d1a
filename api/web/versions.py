"""API versions: what each one brought, and how a request says which one it speaks (microversions).

A version number is data on a field, a filter, a route or an argument (``since``); no function of its own checks it.
"""

import functools
import re

from ingot.common import errors

HISTORY: dict[int, str] = {
    1: "the first numbered version; what a request without a version header gets",
    2: "nodes that are ready show the provision state available instead of null",
    3: "node: driver_internal_info",
    4: "verbs manage and provide, state manageable",
    5: "node: name; nodes are found by name as well",
    6: "verb inspect; node: inspection_started_at, inspection_finished_at",
    7: "node: clean_step",
    8: "fields= selects what an answer shows",
    9: "nodes: filter provision_state",
    10: "node names may hold every unreserved URL character",
    11: "new nodes start in enroll",
    12: "node: raid_config, target_raid_config; PUT states/raid",
    13: "verb abort while cleaning waits",
    14: "links to a node's states and a driver's properties",
    15: "verb clean with clean_steps",
    16: "nodes: filter driver",
    17: "verb adopt",
    18: "port: internal_info",
    19: "port: local_link_connection, pxe_enabled",
    20: "node: network_interface",
    21: "node: resource_class, also as a filter",
    22: "lookup and heartbeat for agents",
    23: "portgroups",
    24: "portgroups of a node, ports of a portgroup; port: portgroup_uuid",
    25: "a node can be taken out of its chassis",
    26: "portgroup: mode, properties",
    27: "soft power off and soft rebooting; timeout for power changes",
    28: "VIFs of a node",
    29: "non-maskable interrupt",
    30: "drivers: type filter, details of hardware types",
    31: "node: boot, console, deploy, inspect, management, power, raid, vendor interfaces",
    32: "volume connectors and targets",
    33: "node: storage_interface",
    34: "port: physical_network",
    35: "config drive with rebuild",
    36: "heartbeat: agent_version",
    37: "traits of nodes",
    38: "verbs rescue and unrescue; node: rescue_interface",
    39: "state inspect wait is shown as itself",
    40: "BIOS settings; node: bios_interface",
    41: "verb abort while inspection waits",
    42: "node: fault, also as a filter",
    43: "detail= on collections",
    44: "node: deploy_step",
    45: "PATCH of a node's driver may reset its interfaces",
    46: "node: conductor_group, also as a filter",
    47: "node: automated_clean",
    48: "node: protected, protected_reason",
    49: "conductors; node: conductor, also as a filter",
    50: "node: owner, also as a filter",
    51: "node: description, also as a filter",
    52: "allocations",
    53: "port: is_smartnic",
    54: "events",
    55: "deploy templates",
    56: "config drive as an object",
    57: "PATCH of allocations",
    58: "allocations of a given node",
    59: "vendor_data in a config drive",
    60: "allocation: owner",
    61: "node: retired, retired_reason, also as a filter",
    62: "agent tokens",
    63: "indicators",
    64: "network_type in a port's local_link_connection",
    65: "node: lessee, also as a filter",
    66: "node: network_data",
    67: "a VIF can be attached to a given port",
    68: "heartbeat: agent_verify_ca",
    69: "deploy_steps with active and rebuild",
    70: "disable_ramdisk with clean",
    71: "announces scoped access rules",
    72: "heartbeat: agent_status, agent_status_message",
    73: "verbs deploy and undeploy",
    74: "details of BIOS settings",
    75: "node: boot_mode, secure_boot",
    76: "PUT states/boot_mode and states/secure_boot",
    77: "fields= on drivers",
    78: "history of a node",
    79: "allocations prefer a node of their own name",
    80: "announces that projects may create nodes",
    81: "inventory of a node",
    82: "node: shard, also as a filter; shards",
    83: "node: parent_node; children of a node",
    84: "continue_inspection is announced",
    85: "verb unhold; states clean hold and deploy hold",
    86: "firmware components; node: firmware_interface",
    87: "verb service; node: service_step",
    88: "port: name; ports are found by name as well",
    89: "virtual media can be attached and detached",
    90: "OVN VTEP form of local_link_connection",
    91: "a URL's ending .json is part of the name",
    92: "runbooks",
    93: "virtual media can be read",
    94: "POST of a port takes a node's name",
    95: "node: disable_power_off",
    96: "inspection rules",
    97: "port: description",
    98: "escaped characters in the paths of a patch",
    99: "ports and portgroups: filter conductor_groups",
    100: "port: vendor",
    101: "port: category",
    102: "portgroup: physical_network",
    103: "portgroup: category",
    104: "node: instance_name, also as a filter",
    105: "announces the end of the OVN VTEP form",
    106: "portgroups: filter shard",
    107: "announces x-openstack-request-id",
    108: "disable_ramdisk with service",
    109: "node: health",
    110: "verb abort while a deployment waits",
    111: "dynamic portgroups",
    112: "runbook: traits, description",
    113: "history: project",
    114: "firmware component: vendor, model, serial_number",
    115: "history: state, target_provision_state, duration_seconds",
}

MIN = 1
MAX = max(HISTORY)

HEADER = "X-OpenStack-Ironic-API-Version"
MIN_HEADER = "X-OpenStack-Ironic-API-Minimum-Version"
MAX_HEADER = "X-OpenStack-Ironic-API-Maximum-Version"
RANGE = {MIN_HEADER: f"1.{MIN}", MAX_HEADER: f"1.{MAX}"}

_NUMBER = re.compile(r"(-?\d{1,6})\.(\d{1,6})", re.ASCII)
_SERVICE = re.compile(r"\s*baremetal\s+(\S+)\s*", re.ASCII | re.IGNORECASE)


@functools.lru_cache(maxsize=16)  # strangers send headers, too, and long ones
def negotiate(own: str | None, common: str | None) -> int:
    """Return the minor version that a request speaks.

    :param own: value of X-OpenStack-Ironic-API-Version.
    :param common: value of OpenStack-API-Version; it wins when it names this service.
    :raises VersionRefused: it cannot be read, or is not served.
    """
    entries = (_SERVICE.fullmatch(entry) for entry in (common or "").split(","))
    named = next((entry[1] for entry in entries if entry), (own or "").strip())
    if not named:
        return MIN
    if named.lower() == "latest":
        return MAX
    number = _NUMBER.fullmatch(named)
    if number is None:
        raise errors.VersionRefused(f"Version {named[:40]!r} cannot be read; send 1.{MIN} to 1.{MAX}, or latest.")
    major, minor = int(number[1]), int(number[2])
    if major != 1 or not MIN <= minor <= MAX:
        raise errors.VersionRefused(f"Version {named} is not served; send 1.{MIN} to 1.{MAX}, or latest.")
    return minor
