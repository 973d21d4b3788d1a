"""What a BMC knows of its machine, in the form in which agents send inventories."""

from collections.abc import Iterator

from ingot.common.json_types import Json
from ingot.drivers.redfish import boot_device, connection

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
    place = document.get(part)
    members = machine.read_members(place["@odata.id"]) if isinstance(place, dict) and "@odata.id" in place else []
    return [one for one in members if (one.get("Status") or {}).get("State") not in _ABSENT]


def _drop_unknown(**facts: object) -> Json:
    return {name: fact for name, fact in facts.items() if fact is not None}


def _read_processors(machine: connection.Machine, system: Json) -> Json:
    processors = [one for one in _list(machine, system, "Processors") if one.get("ProcessorType", "CPU") == "CPU"]
    first = processors[0] if processors else {}
    summary = system.get("ProcessorSummary") or {}
    threads = sum(one.get("TotalThreads") or one.get("TotalCores") or 0 for one in processors)
    return _drop_unknown(
        count=threads or summary.get("LogicalProcessorCount") or summary.get("Count"),
        architecture=_ARCHITECTURES.get(str(first.get("InstructionSet"))),
        model_name=first.get("Model") or summary.get("Model"),
        frequency=first.get("MaxSpeedMHz"),
    )


def _read_memory(system: Json) -> Json:
    size = (system.get("MemorySummary") or {}).get("TotalSystemMemoryGiB")
    return {"physical_mb": int(size * 1024)} if size else {}


def _list_disks(machine: connection.Machine, system: Json) -> Iterator[Json]:
    storages = _list(machine, system, "Storage")
    links = [link for storage in storages for link in storage.get("Drives") or ()]
    for drive in filter(None, (machine.read_optional(link["@odata.id"]) for link in links)):
        kind = drive.get("MediaType")
        yield _drop_unknown(
            name=drive.get("Name") or drive.get("Id"),
            model=drive.get("Model"),
            vendor=drive.get("Manufacturer"),
            serial=drive.get("SerialNumber"),
            size=drive.get("CapacityBytes"),
            rotational=None if kind is None else kind == "HDD",
            wwn=_find_wwn(drive),
        )
    if links:
        return
    for storage in _list(machine, system, "SimpleStorage"):
        for device in storage.get("Devices") or ():
            yield _drop_unknown(
                name=device.get("Name"),
                model=device.get("Model"),
                vendor=device.get("Manufacturer"),
                size=device.get("CapacityBytes"),
            )


def _find_wwn(drive: Json) -> str | None:
    names = (one for one in drive.get("Identifiers") or () if one.get("DurableNameFormat") in ("NAA", "EUI"))
    name = next((str(one["DurableName"]) for one in names if one.get("DurableName")), None)
    return None if name is None else f"0x{name.lower().removeprefix('0x').replace(':', '')}"


def _describe_card(card: Json) -> Json:
    mac = card.get("MACAddress") or card.get("PermanentMACAddress")
    return _drop_unknown(
        name=card.get("Id"),
        mac_address=None if mac is None else str(mac).lower().replace("-", ":"),
        has_carrier=_is_linked(card),
        speed_mbps=card.get("SpeedMbps"),
    )


def _is_linked(card: Json) -> bool:
    """Return whether a card has a link; one of which that is not known, and which is in order, may have one."""
    link = card.get("LinkStatus")
    return link in _LINKED if link is not None else (card.get("Status") or {}).get("State") == "Enabled"


def _read_vendor(system: Json) -> Json:
    return _drop_unknown(
        manufacturer=system.get("Manufacturer"),
        product_name=system.get("Model"),
        serial_number=system.get("SerialNumber"),
        sku=system.get("SKU"),
        system_uuid=system.get("UUID"),
        firmware=_drop_unknown(version=system.get("BiosVersion")) or None,
    )


def _read_boot(machine: connection.Machine) -> Json:
    fields = machine.system.boot
    mode = fields.mode.value if fields is not None and fields.mode is not None else None
    names = {value: name for name, value in boot_device.MODES.items()}
    return {"current_boot_mode": names[mode]} if mode in names else {}


def _read_lldp(machine: connection.Machine, system: Json) -> Json:
    """Return what switches say of themselves at the ports of network adapters, by MAC address, else by port."""
    found: Json = {}
    for link in (system.get("Links") or {}).get("Chassis") or ():
        chassis = machine.read_optional(link["@odata.id"])
        for adapter in _list(machine, chassis, "NetworkAdapters"):
            part = "Ports" if "Ports" in adapter else "NetworkPorts"
            for port in _list(machine, adapter, part):
                ethernet = port.get("Ethernet") or {}
                heard = ethernet.get("LLDPReceive") or {}
                facts = {name: heard[key] for key, name in _LLDP.items() if heard.get(key)}
                macs = (
                    ethernet.get("AssociatedMACAddresses") or port.get("AssociatedNetworkAddresses") or [port.get("Id")]
                )
                if facts:
                    found[str(macs[0]).lower()] = facts
    return found
