"""What a BMC knows of its machine, in the form in which agents send inventories."""

from collections.abc import Iterator

from ingot.common.json_types import Json
from ingot.drivers.redfish import boot_device, connection, fields

_ARCHITECTURES = {
    "x86": "i686",
    "x86-64": "x86_64",
    "IA-64": "ia64",
    "ARM-A32": "arm",
    "ARM-A64": "aarch64",
    "MIPS32": "mips",
    "MIPS64": "mips64",
    "PowerISA": "ppc64le",
    "RV64": "riscv64",
}
"""InstructionSet of a processor -> architecture as machines report it on their own."""

_LLDP = {
    "ChassisId": "switch_chassis_id",
    "PortId": "switch_port_id",
    "SystemName": "switch_system_name",
    "SystemDescription": "switch_system_description",
}

_VLANS = range(1, 4095)  # others stand for none

_LINKED = ("LinkUp", "Up")
_ABSENT = ("Absent", "Disabled")


def collect(machine: connection.Machine) -> tuple[Json, Json]:
    """Return an inventory, and what goes with it (``plugin_data``). What the BMC does not say is left out."""
    system = machine.system.json
    found: Json = {
        "cpu": _read_processors(machine, system),
        "memory": _read_memory(system),
        "disks": list(_list_disks(machine, system)),
        "interfaces": [_describe_card(card) for card in _list(machine, system, "EthernetInterfaces")],
        "system_vendor": _read_vendor(system),
        "boot": _read_boot(machine),
    }
    lldp = _read_lldp(machine, system)
    return found, {"parsed_lldp": lldp} if lldp else {}


def _list(machine: connection.Machine, document: Json, part: str) -> list[Json]:
    """Return the members of a collection that a document links to, without those that are not there in fact."""
    place = fields.link(document, part)
    members = machine.read_members(place) if place else []
    return [one for one in members if fields.part(one, "Status").get("State") not in _ABSENT]


def _drop_unknown(**facts: object) -> Json:
    return {name: fact for name, fact in facts.items() if fact is not None}


def _read_processors(machine: connection.Machine, system: Json) -> Json:
    processors = [one for one in _list(machine, system, "Processors") if one.get("ProcessorType", "CPU") == "CPU"]
    first = processors[0] if processors else {}
    summary = fields.part(system, "ProcessorSummary")
    threads = sum(fields.integer(one, "TotalThreads") or fields.integer(one, "TotalCores") or 0 for one in processors)
    counts = (threads, fields.integer(summary, "LogicalProcessorCount"), fields.integer(summary, "Count"))
    return _drop_unknown(
        count=next(filter(None, counts), None),
        architecture=_ARCHITECTURES.get(fields.text(first, "InstructionSet") or ""),
        model_name=fields.text(first, "Model") or fields.text(summary, "Model"),
        frequency=fields.number(first, "MaxSpeedMHz"),
    )


def _read_memory(system: Json) -> Json:
    size = fields.number(fields.part(system, "MemorySummary"), "TotalSystemMemoryGiB")
    return {"physical_mb": int(size * 1024)} if size else {}


def _list_disks(machine: connection.Machine, system: Json) -> Iterator[Json]:
    storages = _list(machine, system, "Storage")
    paths = [path for storage in storages for path in fields.links(storage, "Drives")]
    for drive in filter(None, map(machine.read_optional, paths)):
        kind = fields.text(drive, "MediaType")
        yield {
            **_describe_disk(drive),
            **_drop_unknown(
                serial=fields.text(drive, "SerialNumber"),
                rotational=None if kind is None else kind == "HDD",
                wwn=fields.find_name(drive, "NAA", "EUI"),
            ),
        }
    if paths:
        return
    for storage in _list(machine, system, "SimpleStorage"):
        yield from map(_describe_disk, fields.parts(storage, "Devices"))


def _describe_disk(disk: Json) -> Json:
    return _drop_unknown(
        name=fields.text(disk, "Name") or fields.text(disk, "Id"),
        model=fields.text(disk, "Model"),
        vendor=fields.text(disk, "Manufacturer"),
        size=fields.integer(disk, "CapacityBytes"),
    )


def _describe_card(card: Json) -> Json:
    mac = fields.text(card, "MACAddress") or fields.text(card, "PermanentMACAddress")
    return _drop_unknown(
        name=fields.text(card, "Id"),
        mac_address=None if mac is None else mac.lower().replace("-", ":"),
        has_carrier=_is_linked(card),
        speed_mbps=fields.number(card, "SpeedMbps"),
    )


def _is_linked(card: Json) -> bool:
    """Return whether a card has a link; one of which that is not known, and which is in order, may have one."""
    link = card.get("LinkStatus")
    return link in _LINKED if link is not None else fields.part(card, "Status").get("State") == "Enabled"


def _read_vendor(system: Json) -> Json:
    return _drop_unknown(
        manufacturer=fields.text(system, "Manufacturer"),
        product_name=fields.text(system, "Model"),
        serial_number=fields.text(system, "SerialNumber"),
        sku=fields.text(system, "SKU"),
        system_uuid=fields.text(system, "UUID"),
        firmware=_drop_unknown(version=fields.text(system, "BiosVersion")) or None,
    )


def _read_boot(machine: connection.Machine) -> Json:
    fields = machine.system.boot
    mode = fields.mode.value if fields is not None and fields.mode is not None else None
    name = boot_device.name_mode(mode)
    return {"current_boot_mode": name} if name else {}


def _read_switch(heard: Json) -> Json:
    """Return what one port has heard, by the names that the hook ``parse-lldp`` gives it."""
    facts: Json = {name: said for key, name in _LLDP.items() if (said := fields.text(heard, key))}
    network = fields.integer(heard, "ManagementVlanId")
    if facts and network in _VLANS:
        facts["switch_port_management_vlan_id"] = network
    return facts


def _read_lldp(machine: connection.Machine, system: Json) -> Json:
    """Return what switches say of themselves at the ports of network adapters, by MAC address, else by port."""
    found: Json = {}
    for path in fields.links(fields.part(system, "Links"), "Chassis"):
        for adapter in _list(machine, machine.read_optional(path), "NetworkAdapters"):
            part = "Ports" if "Ports" in adapter else "NetworkPorts"
            for port in _list(machine, adapter, part):
                ethernet = fields.part(port, "Ethernet")
                heard = fields.part(ethernet, "LLDPReceive")
                facts = _read_switch(heard)
                macs = fields.texts(ethernet, "AssociatedMACAddresses")
                names = [*macs, *fields.texts(port, "AssociatedNetworkAddresses"), fields.text(port, "Id")]
                if facts and names[0]:
                    found[names[0].lower()] = facts
    return found
