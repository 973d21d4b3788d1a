"""A machine's BMC: pyghmi's IPMI server, what it gets wrong put right, and the machine behind it.

What pyghmi 1.6's server side lacks, each corrected by the override that names it:

* it agrees to any cipher suite and then speaks suite 3 (SHA-1): ``RackSession.create_open_session_response``;
* it never answers an unknown user, who then waits a minute: ``RackSession._got_rakp1``;
* it keeps a session after its logout, and a login from a known address ends that address's sessions with
  *other* BMCs: ``close_server_session``, ``_handle_ipmi_packet``;
* it tells of no faults of the chassis, and has no sensors, event log and light: ``get_chassis_status``,
  ``handle_raw_request``;
* it drops the persistent and EFI flags of the boot device: ``set_system_boot_options``, ``get_...``;
* its serial console waits for the client, and all machines with it: ``activate_payload``, ``deactivate_payload``;
* its event loop sleeps over a packet that comes while it is about to sleep: ``receive``.

BMCs run on the rack's event loop instead, which says when there is something to ``receive``.
"""

import logging
import secrets
import socket
from typing import Any, Protocol
from uuid import UUID

from pyghmi.ipmi import bmc
from pyghmi.ipmi.private import constants, serversession, session

from ingot.rack.bmc_commands import Extras, find_bridged
from ingot.rack.faults import Faults
from ingot.rack.serial_over_lan import Console, SerialOverLan

LOG = logging.getLogger(__name__)

MAX_PACKET = 3000
# pyghmi wakes itself with shorter ones.
SHORTEST_PACKET = 4

OK = 0x00
INVALID_FIELD = 0xCC
NOT_IN_THIS_STATE = 0xD5
PARAMETER_NOT_SUPPORTED = 0x80

# RMCP+ status codes, IPMI 2.0 table 13-15
_NO_CIPHER_SUITE_MATCH = 0x11
_UNAUTHORIZED_NAME = 0x0D

# Miscellaneous chassis state, byte 4 of IPMI 2.0 table 28-3
_DRIVE_FAULT = 0x04

# Boot flags, parameter 5 of IPMI 2.0 table 28-14
_BOOT_FLAGS = 5
_VALID, _PERSISTENT, _EFI = 0x80, 0x40, 0x20
_DEVICES = {0: "default", 1: "pxe", 2: "disk", 3: "safe", 5: "cdrom", 6: "bios", 15: "floppy"}
_SEND_MESSAGE = (0x06, 0x34)
_NO_SUCH_RECEIVER = 0x83

_WARM_RESET = (0x06, 0x03)
_PAYLOAD_INFO = (0x06, 0x4B)

# Additional device support in the device's id: chassis, SEL, SDR repository, sensors
_ADDITIONAL_DEVICES = 0x87
_CODES = {device: code for code, device in _DEVICES.items()}


class BootSetting(Protocol):
    """What a BMC was ordered for the next boot."""

    @property
    def device(self) -> str: ...
    @property
    def persistent(self) -> bool: ...
    @property
    def efi(self) -> bool: ...


class Chassis(Console, Protocol):
    """What a BMC controls; ``power`` says whether it could do what was asked."""

    @property
    def uuid(self) -> UUID: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def powered(self) -> bool: ...
    def power(self, action: str) -> bool: ...
    def interrupt(self) -> bool: ...
    def log(self, text: str) -> None: ...
    def boot_setting(self) -> BootSetting | None: ...
    def set_boot_setting(self, device: str, persistent: bool, efi: bool) -> None: ...


class RackSession(serversession.ServerSession):
    """A client's session with one BMC."""

    sol_handler = None
    last_payload_type = None

    def create_open_session_response(self, request: bytes) -> bytearray:
        algorithms = (request[12], request[20], request[28])
        if algorithms != (1, 1, 1):
            # authentication, integrity, confidentiality: clients that offer more try again with this one
            return bytearray([request[0], _NO_CIPHER_SUITE_MATCH, 0, 0]) + bytearray(request[4:8])
        response: bytearray = super().create_open_session_response(request)
        return response

    def _got_rakp1(self, data: bytearray) -> None:
        name = bytes(data[28:])
        if self.authdata.get(name.decode("utf-8", "replace")) is None:
            refusal = bytearray([data[0], _UNAUTHORIZED_NAME, 0, 0]) + bytearray(self.clientsessionid)
            self.send_payload(refusal, constants.payload_types["rakp2"], retry=False)
            return
        super()._got_rakp1(data)

    def process_pktqueue(self) -> None:
        if self.bmc.drops_packets():
            self.pktqueue.clear()
            return
        super().process_pktqueue()

    def _handle_ipmi_packet(self, data: bytearray, sockaddr: Any = None, qent: Any = None) -> None:
        without_session = data[4] in (0, 2) and not any(data[5:13])
        if without_session:
            self.close_server_session()
            self.bmc.pktqueue.append(qent)
            self.bmc.process_pktqueue()
            return
        super()._handle_ipmi_packet(data, sockaddr=sockaddr, qent=qent)

    def close_server_session(self) -> None:
        sessions = session.Session.bmc_handlers.get(self.sockaddr, {})
        if sessions.get(self.bmc.port) is self:
            del sessions[self.bmc.port]
        if not sessions:
            session.Session.bmc_handlers.pop(self.sockaddr, None)
        self.bmc.sessions.discard(self)
        self.bmc.serial.end(self)


class Credentials(dict[str, str]):
    """Password by user name; knows no password while the machine's fault says so."""

    def __init__(self, username: str, password: str, faults: Faults) -> None:
        super().__init__({username: password})
        self._faults = faults

    def get(self, name: str, default: Any = None) -> Any:
        known = super().get(name, default)
        if known is not None and self._faults.active("bmc_wrong_password"):
            return secrets.token_urlsafe(8)
        return known


class RackBmc(bmc.Bmc):
    """The BMC of one machine of the rack, on a UDP port of its own."""

    def __init__(self, chassis: Chassis, address: str, port: int, username: str, password: str) -> None:
        self.chassis = chassis
        self.sessions: set[RackSession] = set()
        self._extras = Extras(chassis)
        credentials = Credentials(username, password, chassis.faults)
        super().__init__(credentials, port=port, bmcuuid=chassis.uuid, address=address)
        self.additionaldevices = _ADDITIONAL_DEVICES
        self.port = int(self.serversocket.getsockname()[1])
        self.serial = SerialOverLan(chassis, lambda: self.port)
        # What pyghmi's input thread does not know, it does not read.
        session.iosockets.remove(self.serversocket)

    def fileno(self) -> int:
        return int(self.serversocket.fileno())

    def receive(self) -> None:
        """Handle every packet that is there."""
        while True:
            try:
                data, sender = self.serversocket.recvfrom(MAX_PACKET, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError as error:
                LOG.debug("port %d: %s", self.port, error)
                return
            if len(data) >= SHORTEST_PACKET:
                handler = session.Session.bmc_handlers.get(sender, {}).get(self.port, self)
                handler.pktqueue.append((data, sender, self.serversocket, handler is not self))
                handler.process_pktqueue()

    def drops_packets(self) -> bool:
        return self.chassis.faults.active("bmc_silent")

    def end_sessions(self) -> None:
        """Forget all sessions, as a BMC does when its password is changed."""
        for one in list(self.sessions):
            one.close_server_session()

    def close(self) -> None:
        """Give the port back."""
        self.end_sessions()
        session.Session.bmc_handlers.pop(self.serversocket, None)
        self.serversocket.close()

    def process_pktqueue(self) -> None:
        if self.drops_packets():
            self.pktqueue.clear()
            return
        super().process_pktqueue()

    def sessionless_data(self, data: bytes, sockaddr: Any) -> None:
        opens_session = len(data) >= 48 and data[4] == 6 and data[5] == 16
        if not opens_session:
            super().sessionless_data(data, sockaddr)
        elif bytes(data[:1] + data[2:4]) == b"\x06\xff\x07":
            request = bytearray(data[16:])
            self.sessions.add(
                RackSession(self.authdata, self.kg, sockaddr, self.serversocket, request, self.uuid, bmc=self)
            )

    # The machine

    def get_power_state(self) -> int:
        return int(self.chassis.powered)

    def get_chassis_status(self, session: Any) -> None:
        drive_fault = _DRIVE_FAULT if self.chassis.faults.active("drive_failed") else 0
        session.send_ipmi_response(data=[self.get_power_state(), 0, drive_fault | self._extras.identify_state()])

    def handle_raw_request(self, request: dict[str, Any], session: Any) -> None:
        netfn, command = request["netfn"], request["command"]
        if (netfn, command) == _SEND_MESSAGE:
            self._bridge(bytes(request["data"]), session)
            return
        answer = self._extras.answer(netfn, command, bytes(request["data"]))
        if answer is not None:
            session.send_ipmi_response(code=answer.code, data=bytearray(answer.data))
        elif (netfn, command) == _PAYLOAD_INFO:
            session.send_ipmi_response(data=bytearray(self.serial.tell_owner()))
        elif (netfn, command) == _WARM_RESET:
            session.send_ipmi_response(code=self.cold_reset())
        else:
            super().handle_raw_request(request, session)

    def activate_payload(self, request: dict[str, Any], session: Any) -> None:
        code, data = self.serial.activate(session, bytes(request["data"]))
        session.send_ipmi_response(code=code, data=bytearray(data))

    def deactivate_payload(self, request: dict[str, Any], session: Any) -> None:
        session.send_ipmi_response(code=self.serial.deactivate(session)[0])

    def _bridge(self, data: bytes, session: Any) -> None:
        """Pass a request on to the controller that it is for, which stands for the machine too."""
        request = find_bridged(data)
        if request is None:
            session.send_ipmi_response(code=_NO_SUCH_RECEIVER)
            return
        for _hop in range(request["hops"]):  # each says that it has passed the message on
            session.send_ipmi_response()
        # What that controller answers comes as a message of its own, with the place of the request in the session.
        session.clientnetfn, session.seqlun, session.clientcommand = (
            request["netfn"] + 1,
            request["seq"],
            request["command"],
        )
        self.deviceid = request["address"]
        self.handle_raw_request(request, session)
        self.deviceid = 0

    def _power(self, action: str) -> int:
        if not self.chassis.power(action):
            return NOT_IN_THIS_STATE
        if action in ("on", "off"):
            self._extras.note_power(action == "on")
        return OK

    def power_on(self) -> int:
        return self._power("on")

    def power_off(self) -> int:
        return self._power("off")

    def power_cycle(self) -> int:
        return self._power("cycle")

    def power_reset(self) -> int:
        return self._power("reset")

    def power_shutdown(self) -> int:
        return self._power("soft")

    def pulse_diag(self) -> int:
        return OK if self.chassis.interrupt() else NOT_IN_THIS_STATE

    def get_system_guid(self) -> UUID:
        return self.chassis.uuid

    def cold_reset(self) -> int:
        self.chassis.log("the BMC restarts")
        self.end_sessions()
        return OK

    def set_system_boot_options(self, request: dict[str, Any], session: Any) -> None:
        data = request["data"]
        if data[0] & 0x7F != _BOOT_FLAGS:
            # 0, 3 and 4 (set in progress, flag clearing, acknowledge) have nothing to set here
            session.send_ipmi_response(code=OK if data[0] in (0, 3, 4) else PARAMETER_NOT_SUPPORTED)
            return
        device = _DEVICES.get((data[2] >> 2) & 0x0F)
        if device is None:
            session.send_ipmi_response(code=INVALID_FIELD)
            return
        self.chassis.set_boot_setting(device, bool(data[1] & _PERSISTENT), bool(data[1] & _EFI))
        session.send_ipmi_response()

    def get_system_boot_options(self, request: dict[str, Any], session: Any) -> None:
        if request["data"][0] & 0x7F != _BOOT_FLAGS:
            session.send_ipmi_response(code=PARAMETER_NOT_SUPPORTED)
            return
        session.send_ipmi_response(data=[1, _BOOT_FLAGS, *boot_flags(self.chassis.boot_setting()), 0, 0, 0])


def boot_flags(setting: BootSetting | None) -> tuple[int, int]:
    """Return the first two bytes of the boot flags; zeros when nothing is set.

    A device that only Redfish knows is none here.
    """
    if setting is None:
        return (0, 0)
    flags = _VALID | (_PERSISTENT if setting.persistent else 0) | (_EFI if setting.efi else 0)
    return (flags, _CODES.get(setting.device, 0) << 2)
