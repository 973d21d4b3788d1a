"""A thousand Redfish faces in one process, a hundred of them silent."""

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.functional.rack.redfish_base import RedfishTest

MACHINES, SILENT = 1000, 100
AT_ONCE = 200
_REQUEST = (
    b"GET {path} HTTP/1.1\r\nHost: bmc\r\nAuthorization: Basic YWRtaW46cGFzc3dvcmQ=\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)


class ScaleTest(RedfishTest):
    settings: ClassVar[dict[str, Any]] = {**RedfishTest.settings, "machines": MACHINES, "disks": 1}

    def status(self, field: str) -> int:
        lines = Path(f"/proc/{self.rack.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(field)).split()[1])

    def test_all_are_read_while_some_keep_their_clients_waiting(self) -> None:
        for machine in self.rack.machines[:SILENT]:
            self.rack.control.order_fault(machine["name"], "redfish_silent")
        began = time.monotonic()
        states, waiting = asyncio.run(self.read_all())
        took = time.monotonic() - began
        self.assertEqual((MACHINES - SILENT, SILENT), (states.count(b'"PowerState": "Off"'), waiting))
        self.assertLess(took, 60)
        self.assertLess(self.status("Threads:"), 20)
        self.assertLess(self.status("VmRSS:"), 300 * 1024)

    async def read_all(self) -> tuple[list[bytes], int]:
        """Read all systems; return the power states, and how many clients still wait."""
        context = ssl.create_default_context(cafile=self.ca_file)
        gate = asyncio.Semaphore(AT_ONCE)
        readers = [asyncio.ensure_future(self.read(face["redfish"], context, gate)) for face in self.rack.machines]
        done, waiting = await asyncio.wait(readers[SILENT:]), readers[:SILENT]
        left = [one for one in waiting if not one.done()]
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return [one.result() for one in done[0]], len(left)

    async def read(self, face: dict[str, str], context: ssl.SSLContext, gate: asyncio.Semaphore) -> bytes:
        where = urlsplit(face["address"])
        async with gate:
            reader, writer = await asyncio.open_connection(
                where.hostname, where.port, ssl=context, ssl_handshake_timeout=120
            )
            writer.write(_REQUEST.replace(b"{path}", face["system"].encode()))
            answer = await reader.read()
            writer.close()
        return next(part for part in (b'"PowerState": "Off"', b'"PowerState": "On"', b"") if part in answer)
