"""Inventories, and what hooks are to make of them: the same for Ingot's hooks and Ironic's.

This imports nothing of either: ``devstack/record_ironic_hooks.py`` runs Ironic's hooks with it, and writes down what
they make of each case.
"""

from typing import Any

Facts = dict[str, Any]

MAC = "52:54:00:00:00:01"

# What lldpd 1.0.16 of Debian sends, on a port of a switch with an address of each family.
LLDPD = [
    [1, "04525400aa0001"],
    [2, "077377703132"],
    [3, "0004"],
    [5, "7377697463682d312e6578616d706c652e6f7267"],
    [6, "5261636b207377697463682c2076657273696f6e20372e31"],
    [7, "009c0080"],
    [8, "0501c0000221020000000200"],
    [8, "110220010db8000000000000000000000033020000000200"],
    [4, "746f207261636b20342c20756e6974203132"],
    [127, "00120f030100000000"],
    [127, "00120f010080000036"],
    [0, ""],
]
# What a switch of a data center sends: VLANs, link aggregation, jumbo frames; by the tables of IEEE 802.1AB and 802.1Q.
SWITCH = [
    [1, "0464649b8ca4c0"],
    [2, "0545746865726e6574312f3132"],
    [3, "0078"],
    [4, "496e74657266616365202031206173206c65616635"],
    [5, "6c6561662d35"],
    [6, "4f7065726174696e6720737973746d2c0d0a76657273696f6e2034"],
    [7, "00140014"],
    [8, "0501c000020a0200000001000000"],
    [127, "0080c2010078"],
    [127, "0080c202060064"],
    [127, "0080c20202006f"],
    [127, "0080c3000a03766e31"],
    [127, "0080c20300650974656e616e742d3130"],
    [127, "0080c203006606626c75652d31"],
    [127, "0080c204028902"],
    [127, "0080c2060b"],
    [127, "0080c206000b"],
    [127, "0080c2070300000005"],
    [127, "00120f0103006c0036"],
    [127, "00120f01036c01001e"],
    [127, "00120f042400"],
    [127, "0012bb01000f04"],
    [0, ""],
]
HOSTILE = [
    [1, "04"],
    [1, "ff00"],
    [2, "01fffe"],
    [2, ""],
    [4, "zz"],
    [5, "00"],
    [6, "61" * 600],
    [7, "0014"],
    [8, "0501c0"],
    [8, "ff01c0000201"],
    [127, "0080"],
    [127, "0080c20300"],
    [127, "0080c20300650961"],
    [127, "00120f0103"],
    [127, "00120f0103ffffffff"],
    [5, "6c6561662d36"],
]


def _card(**facts: object) -> Facts:
    return {"name": "eth0", "mac_address": MAC, "ipv4_address": "10.10.10.7", "ipv6_address": None, **facts}


def _case(hook: str, inventory: Facts | None = None, **given: Any) -> Facts:
    """Return a case.

    :param hook: what is run, after ``validate-interfaces`` where it needs that.
    :param given: ``plugin_data``, ``properties`` of the node, ``port``, ``options``, and ``before``, the inventory of
        the inspection before.
    """
    return {"hook": hook, "inventory": {"interfaces": [_card()], **(inventory or {})}, **given}


def _heard(tlvs: list[list[Any]]) -> Facts:
    return {"lldp_raw": {"eth0": tlvs}}


_FLAGS = ["fpu", "vmx", "aes", "pdpe1gb", "pse"]
_T4 = {"vendor_id": "10de", "product_id": "1eb8", "class": "030200", "revision": "a1", "bus": "0000:3b:00.0"}
_ALIAS = '{"vendor_id": "10de", "product_id": "1eb8", "name": "t4"}'
_DISKS = [
    {"name": "/dev/sda", "size": 500 * 1024**3, "serial": "S1", "model": "Fast Disk", "rotational": False},
    {"name": "/dev/sdb", "size": 4000 * 1024**3, "serial": "S2", "model": "Large Disk", "rotational": True},
    {"name": "/dev/sdc", "size": 4000 * 1024**3, "serial": "S3", "model": "Large Disk", "rotational": True},
]
_NETWORKS = ["10.10.10.0/24:physnet_a", "2001:db8::/64:physnet_b"]
_IPV6 = {"interfaces": [_card(ipv4_address="192.0.2.9", ipv6_address="2001:db8::7")]}
_CPU = {"cpu": {"flags": _FLAGS, "count": 8, "architecture": "x86_64"}}


def _hinted(expected: str, **hints: object) -> Facts:
    return {f"root device by {expected}": _case("root-device", {"disks": _DISKS}, properties={"root_device": hints})}


CASES: dict[str, Facts] = {
    "lldpd": _case("parse-lldp", plugin_data=_heard(LLDPD)),
    "a switch of a data center": _case("parse-lldp", plugin_data=_heard(SWITCH)),
    "a hostile switch": _case("parse-lldp", plugin_data=_heard(HOSTILE)),
    "TLVs in the inventory": _case("parse-lldp", {"interfaces": [_card(lldp=LLDPD)]}),
    "a card that heard nothing": _case("parse-lldp", plugin_data=_heard([])),
    "links of lldpd": _case("local-link-connection", plugin_data=_heard(LLDPD)),
    "links of a switch": _case("local-link-connection", plugin_data=_heard(SWITCH)),
    "links that are known": _case(
        "local-link-connection", plugin_data=_heard(SWITCH), port={"local_link_connection": {"port_id": "mine"}}
    ),
    "a chassis by its name": _case("local-link-connection", plugin_data=_heard([[1, "076c656166"], [2, "0531"]])),
    "network by IPv4": _case("physical-network", options={"physical_network_cidr_map": _NETWORKS}),
    "network by IPv6": _case("physical-network", _IPV6, options={"physical_network_cidr_map": _NETWORKS}),
    "another network": _case(
        "physical-network", port={"physical_network": "old"}, options={"physical_network_cidr_map": _NETWORKS}
    ),
    "no network": _case("physical-network", options={"physical_network_cidr_map": ["192.0.2.0/24:x"]}),
    "flags": _case("cpu-capabilities", _CPU),
    "flags beside capabilities": _case("cpu-capabilities", _CPU, properties={"capabilities": "boot_mode:uefi"}),
    "no flags": _case("cpu-capabilities", {"cpu": {"flags": []}}),
    "processors": _case("cpus", _CPU),
    "devices": _case("pci-devices", plugin_data={"pci_devices": [_T4, _T4]}, options={"pci_device_alias": [_ALIAS]}),
    "no devices": _case("pci-devices", options={"pci_device_alias": [_ALIAS]}),
    "accelerators": _case("accelerators", plugin_data={"pci_devices": [_T4, {**_T4, "product_id": "ffff"}]}),
    "accelerators that a BMC knows": _case("accelerators", {"pci_devices": [_T4]}),
    "no accelerators": _case("accelerators", plugin_data={"pci_devices": [{**_T4, "product_id": "ffff"}]}),
    "no hints": _case("root-device", {"disks": _DISKS}),
    "the agent's disk": _case("root-device", {"disks": _DISKS}, plugin_data={"root_disk": _DISKS[1]}),
    "all of the disk": _case(
        "root-device", plugin_data={"root_disk": _DISKS[0]}, options={"disk_partitioning_spacing": False}
    ),
    **_hinted("serial number", serial="S2"),
    **_hinted("case", model="fast disk"),
    **_hinted("size", size=500),
    **_hinted("least size", size=">= 501"),
    **_hinted("range", size="<range-in> [ 600 5000 ]"),
    **_hinted("rotation", rotational=False),
    **_hinted("part", model="<in> large"),
    **_hinted("choice", serial="<or> S9 <or> S3"),
    **_hinted("difference", serial="s!= S1"),
    **_hinted("none", serial="S9"),
    **_hinted("a wrong name", colour="red"),
    **_hinted("a wrong size", size="huge"),
    "a disk to be skipped": _case(
        "root-device",
        {"disks": _DISKS},
        properties={"root_device": {"rotational": True}, "skip_block_devices": [{"serial": "S2"}]},
    ),
    "a new array": _case("raid-device", {"disks": _DISKS}, before={"disks": _DISKS[:2]}),
    "two new arrays": _case("raid-device", {"disks": _DISKS}, before={"disks": _DISKS[:1]}),
    "no array": _case("raid-device", {"disks": _DISKS}, before={"disks": _DISKS}),
    "a root device that is known": _case(
        "raid-device", {"disks": _DISKS}, before={"disks": _DISKS[:2]}, properties={"root_device": {"serial": "S1"}}
    ),
    "the first inspection": _case("raid-device", {"disks": _DISKS}),
    "records": _case(
        "extra-hardware",
        plugin_data={
            "data": [["cpu", "physical", "number", "2"], ["disk", "sda", "size", "x"], ["disk", "sda", "n", 1]]
        },
    ),
    "short records": _case("extra-hardware", plugin_data={"data": [["cpu", "physical"], ["a", "b", "c", "d"]]}),
    "short records, strictly": _case(
        "extra-hardware",
        plugin_data={"data": [["cpu", "physical"], ["a", "b", "c", "d"]]},
        options={"extra_hardware_strict": True},
    ),
    "no records": _case("extra-hardware", plugin_data={"data": "nonsense"}),
}
