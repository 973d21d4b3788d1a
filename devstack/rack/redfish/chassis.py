"""Chassis: the box around a system, with its sensors, its power supplies and its network adapter."""

from dataclasses import dataclass
from typing import Any

from ingot.rack import sensors
from ingot.rack.redfish import systems
from ingot.rack.redfish.board import Board
from ingot.rack.redfish.routing import ROOT, Call, Document, Handler, Route, collection, link, one_of, patch, resource
from ingot.rack.redfish.systems import CRITICAL, LEDS, OK

CHASSIS = f"{ROOT}/Chassis"
ADAPTER = "Adapter1"


@dataclass(frozen=True)
class Temperature:
    """Degrees Celsius, without and with power, and from where on they are too many."""

    name: str
    context: str
    off: int
    on: int
    warning: int
    critical: int


TEMPERATURES = (
    Temperature("Inlet Temp", "Intake", 19, 24, 38, 42),
    Temperature("CPU 1", "CPU", 22, 48, 85, 95),
    Temperature("Exhaust", "Exhaust", 22, 34, 70, 75),
)
FANS = ("Fan 1", "Fan 2")
_FAN_RPM, _LEAST_RPM = 5400, 600
_WATTS = {True: 180, False: 12}
SUPPLIES = ("PSU 1", "PSU 2")


def _list(call: Call) -> Document:
    return collection(CHASSIS, "Chassis", [member.chassis for member in call.service.members])


def _show(call: Call) -> Document:
    member, board = call.member, call.board
    parts = ("Power", "Thermal", "Sensors", "NetworkAdapters")
    return resource(
        member.chassis,
        "Chassis.v1_25_1.Chassis",
        f"Chassis of {board.machine.name}",
        ChassisType="RackMount",
        Manufacturer=member.vendor.manufacturer,
        Model=member.vendor.model,
        SerialNumber=board.machine.name,
        PartNumber="RACK-C",
        UUID=str(board.machine.uuid),
        PowerState="On" if board.machine.powered else "Off",
        IndicatorLED=board.state["led"],
        Status=systems.health(board),
        Links={"ComputerSystems": [link(member.system)], "ManagedBy": [link(member.manager)]},
        Actions={
            "#Chassis.Reset": {
                "target": f"{member.chassis}/Actions/Chassis.Reset",
                "ResetType@Redfish.AllowableValues": list(member.vendor.reset_types),
            }
        },
        **{part: link(f"{member.chassis}/{part}") for part in parts},
    )


def _change_led(call: Call, body: Document, name: str) -> None:
    call.board.state["led"] = one_of(body, name, LEDS)
    call.board.save()


def _change(call: Call) -> None:
    patch(call, {"IndicatorLED": _change_led})


def _degrees(board: Board, one: Temperature) -> int:
    """Return what a sensor reads: that of the air that comes in, the same as over IPMI."""
    if one.name == sensors.INLET.name:
        return sensors.INLET.read(board.machine)
    return one.on if board.machine.powered else one.off


def _thermal(call: Call) -> Document:
    on = call.board.machine.powered
    read = [_degrees(call.board, one) for one in TEMPERATURES]
    temperatures = [
        {
            "MemberId": str(number),
            "Name": one.name,
            "SensorNumber": number,
            "PhysicalContext": one.context,
            "ReadingCelsius": read[number],
            "UpperThresholdNonCritical": one.warning,
            "UpperThresholdCritical": one.critical,
            "MinReadingRangeTemp": 0,
            "MaxReadingRangeTemp": 125,
            "Status": CRITICAL if read[number] >= one.critical else OK,
        }
        for number, one in enumerate(TEMPERATURES)
    ]
    fans = [
        {
            "MemberId": str(number),
            "Name": name,
            "PhysicalContext": "Fan",
            "Reading": _FAN_RPM if on else 0,
            "ReadingUnits": "RPM",
            "LowerThresholdCritical": _LEAST_RPM,
            "Status": OK if on else {"State": "StandbyOffline", "Health": "OK"},
        }
        for number, name in enumerate(FANS)
    ]
    return resource(call.path, "Thermal.v1_7_3.Thermal", "Thermal", Temperatures=temperatures, Fans=fans, Status=OK)


def _power(call: Call) -> Document:
    watts = _WATTS[call.board.machine.powered]
    supplies = [
        {
            "MemberId": str(number),
            "Name": name,
            "Manufacturer": "Ingot",
            "Model": "Simulated",
            "SerialNumber": f"{call.board.machine.name}-{number}",
            "PowerSupplyType": "AC",
            "LineInputVoltage": 230,
            "LineInputVoltageType": "ACWideRange",
            "PowerCapacityWatts": 750,
            "LastPowerOutputWatts": watts // len(SUPPLIES),
            "InputRanges": [{"InputType": "AC", "MinimumVoltage": 100, "MaximumVoltage": 240, "OutputWattage": 750}],
            "Status": OK,
        }
        for number, name in enumerate(SUPPLIES)
    ]
    control = [{"MemberId": "0", "Name": "Server", "PowerConsumedWatts": watts, "Status": OK}]
    return resource(call.path, "Power.v1_7_3.Power", "Power", PowerSupplies=supplies, PowerControl=control)


def _sensors_of(board: Board) -> dict[str, dict[str, Any]]:
    on = board.machine.powered
    temperatures = {
        f"Temp{number}": {"Name": one.name, "Reading": _degrees(board, one), "ReadingUnits": "Cel"}
        for number, one in enumerate(TEMPERATURES)
    }
    fans = {
        f"Fan{number}": {"Name": name, "Reading": _FAN_RPM if on else 0, "ReadingUnits": "{rev}/min"}
        for number, name in enumerate(FANS)
    }
    return temperatures | fans | {"Power": {"Name": "Power", "Reading": _WATTS[on], "ReadingUnits": "W"}}


def _sensors(call: Call) -> Document:
    return collection(call.path, "Sensor", [f"{call.path}/{name}" for name in _sensors_of(call.board)])


def _sensor(call: Call) -> Document:
    found = _sensors_of(call.board).get(call.ids["sensor"])
    if found is None:
        raise call.missing()
    return resource(call.path, "Sensor.v1_10_1.Sensor", found.pop("Name"), Status=OK, **found)


# The network adapter, with what the switch says by LLDP


def _adapters(call: Call) -> Document:
    return collection(call.path, "NetworkAdapter", [f"{call.path}/{ADAPTER}"])


def _adapter(call: Call) -> Document:
    return resource(
        call.path,
        "NetworkAdapter.v1_11_0.NetworkAdapter",
        "Network adapter",
        Manufacturer="Ingot",
        Model="Simulated",
        SerialNumber=f"{call.board.machine.name}-NIC",
        PartNumber="RACK-N",
        Controllers=[{"FirmwarePackageVersion": call.board.state["firmware"]["NIC"]}],
        Ports=link(f"{call.path}/Ports"),
        NetworkPorts=link(f"{call.path}/NetworkPorts"),
        NetworkDeviceFunctions=link(f"{call.path}/NetworkDeviceFunctions"),
        Status=OK,
    )


def _below_adapter(kind: str) -> Handler:
    def show(call: Call) -> Document:
        return collection(call.path, kind, [f"{call.path}/{n + 1}" for n in range(len(call.board.machine.spec.macs))])

    return show


def _mac(call: Call) -> str:
    name, macs = call.ids["port"], call.board.machine.spec.macs
    if not name.isdecimal() or not 1 <= int(name) <= len(macs):
        raise call.missing()
    return macs[int(name) - 1].upper()


def _port(call: Call) -> Document:
    mac, spec, number = _mac(call), call.board.machine.spec, int(call.ids["port"])
    lldp = {
        "ChassisId": "02:00:00:00:00:01",
        "ChassisIdSubtype": "MacAddr",
        "PortId": f"Ethernet{spec.index}/{number}",
        "PortIdSubtype": "IfName",
        "SystemName": "rack-switch",
        "SystemDescription": "Switch of the virtual rack",
        "SystemCapabilities": ["Bridge", "Router"],
        "ManagementAddressIPv4": "192.0.2.254",
        "ManagementVlanId": 7,
    }
    return resource(
        call.path,
        "Port.v1_14_0.Port",
        f"Port {number}",
        PortId=str(number),
        CurrentSpeedGbps=10,
        LinkStatus="LinkUp" if number == 1 else "LinkDown",
        Ethernet={"AssociatedMACAddresses": [mac], **({"LLDPReceive": lldp} if number == 1 else {})},
        Status=OK,
    )


def _network_port(call: Call) -> Document:
    mac, number = _mac(call), int(call.ids["port"])
    return resource(
        call.path,
        "NetworkPort.v1_4_2.NetworkPort",
        f"Port {number}",
        AssociatedNetworkAddresses=[mac],
        CurrentLinkSpeedMbps=10000,
        LinkStatus="Up" if number == 1 else "Down",
        PhysicalPortNumber=str(number),
        Status=OK,
    )


def _function(call: Call) -> Document:
    mac = _mac(call)
    return resource(
        call.path,
        "NetworkDeviceFunction.v1_10_0.NetworkDeviceFunction",
        f"Function {call.ids['port']}",
        DeviceEnabled=True,
        NetDevFuncType="Ethernet",
        Ethernet={"MACAddress": mac, "PermanentMACAddress": mac},
        Status=OK,
    )


_HERE = "/Chassis/{chassis}"
_NIC = f"{_HERE}/NetworkAdapters/{ADAPTER}"
ROUTES = (
    Route("GET", "/Chassis", _list),
    Route("GET", _HERE, _show),
    Route("PATCH", _HERE, _change),
    Route("POST", f"{_HERE}/Actions/Chassis.Reset", systems.reset),
    Route("GET", f"{_HERE}/Thermal", _thermal),
    Route("GET", f"{_HERE}/Power", _power),
    Route("GET", f"{_HERE}/Sensors", _sensors),
    Route("GET", f"{_HERE}/Sensors/{{sensor}}", _sensor),
    Route("GET", f"{_HERE}/NetworkAdapters", _adapters),
    Route("GET", _NIC, _adapter),
    Route("GET", f"{_NIC}/Ports", _below_adapter("Port")),
    Route("GET", f"{_NIC}/Ports/{{port}}", _port),
    Route("GET", f"{_NIC}/NetworkPorts", _below_adapter("NetworkPort")),
    Route("GET", f"{_NIC}/NetworkPorts/{{port}}", _network_port),
    Route("GET", f"{_NIC}/NetworkDeviceFunctions", _below_adapter("NetworkDeviceFunction")),
    Route("GET", f"{_NIC}/NetworkDeviceFunctions/{{port}}", _function),
)
