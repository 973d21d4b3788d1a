"""sushy-tools' emulator of a BMC: a Redfish service that is no part of this project, in a process of its own."""

import pathlib
import subprocess
import sys
import time
import uuid
from typing import Any

import bcrypt
import fixtures
import requests

from ingot.rack import ports
from tests import patience

USER, PASSWORD = "operator", "correct horse"


class Emulator(fixtures.Fixture):
    """A BMC with machines that exist only in its memory; power takes 1 to 11 s to change.

    :param machines: how many.
    :param guarded: whether it wants the user and password of this module.
    :ivar systems: paths of the machines.
    """

    def __init__(self, machines: int = 1, guarded: bool = False) -> None:
        super().__init__()
        self._uuids = [str(uuid.UUID(int=number + 1)) for number in range(machines)]
        self._guarded = guarded
        self.systems = [f"/redfish/v1/Systems/{one}" for one in self._uuids]

    def _setUp(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port = ports.tcp()
        self.url = f"http://127.0.0.1:{port}"
        systems = [
            {"uuid": one, "name": f"machine-{number}", "power_state": "Off", "external_notifier": False,
             "nics": [{"mac": f"52:54:00:00:{number // 256:02x}:{number % 256:02x}", "ip": "192.0.2.1"}]}
            for number, one in enumerate(self._uuids)
        ]  # fmt: skip
        settings: dict[str, Any] = {
            "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
            "SUSHY_EMULATOR_LISTEN_PORT": port,
            "SUSHY_EMULATOR_STATE_DIR": str(directory),
            "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
        }
        if self._guarded:
            hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
            (directory / "users").write_text(f"{USER}:{hashed}\n")
            settings["SUSHY_EMULATOR_AUTH_FILE"] = str(directory / "users")
        config = directory / "emulator.conf"
        config.write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()))
        self.log = directory / "emulator.log"
        command = [str(pathlib.Path(sys.executable).parent / "sushy-emulator"), "--config", str(config), "--fake"]
        with self.log.open("wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self._wait(process)

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        until = time.monotonic() + patience.seconds(60)
        while True:
            try:
                self.get("/redfish/v1/")
                return
            except requests.ConnectionError:
                if time.monotonic() > until or process.poll() is not None:
                    raise AssertionError(self.log.read_text()) from None
                time.sleep(0.05)

    def get(self, path: str) -> dict[str, Any]:
        """Return a document as another client gets it."""
        answer = requests.get(self.url + path, auth=(USER, PASSWORD), timeout=patience.seconds(60))
        answer.raise_for_status()
        document: dict[str, Any] = answer.json()
        return document

    def system(self, index: int = 0) -> dict[str, Any]:
        """Return the document of a machine."""
        return self.get(self.systems[index])
