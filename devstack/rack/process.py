"""A rack in a process of its own, and a client of its control API: for tests, scripts and the quickstart."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests


class RackError(Exception):
    """The rack did not start, refused a request, or something did not happen in time."""


class RackControl:
    """A client of a rack's control API."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.trust_env = False

    def close(self) -> None:
        self._session.close()

    def machines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("GET", "machines")["machines"]
        return found

    def machine(self, name: str) -> dict[str, Any]:
        return self._call("GET", f"machines/{name}")

    def log(self, name: str) -> list[str]:
        lines: list[str] = self._call("GET", f"machines/{name}/log")["log"]
        return lines

    def power(self, name: str, action: str) -> dict[str, Any]:
        return self._call("POST", f"machines/{name}/power", {"action": action})

    def set_boot_device(self, name: str, device: str, persistent: bool = False, efi: bool = False) -> None:
        body = {"device": device, "persistent": persistent, "efi": efi}
        self._call("PUT", f"machines/{name}/boot-device", body)

    def type(self, name: str, text: str) -> None:
        """Type on the machine's serial console; what it says is in its log, and ``prompt`` while it waits."""
        self._call("POST", f"machines/{name}/console", {"text": text})

    def order_fault(self, name: str, fault: str, value: Any = None, times: int | None = None) -> None:
        self._call("POST", f"machines/{name}/faults", {"name": fault, "value": value, "times": times})

    def clear_faults(self, name: str, fault: str | None = None) -> None:
        self._call("DELETE", f"machines/{name}/faults" + (f"/{fault}" if fault else ""))

    def wait_for(self, name: str, condition: Callable[[dict[str, Any]], bool], timeout: float = 60.0) -> dict[str, Any]:
        """Return the machine once ``condition(machine)`` holds.

        :raises RackError: after ``timeout`` seconds, with the machine's state and the end of its log.
        """
        deadline = time.monotonic() + timeout
        while not condition(machine := self.machine(name)):
            if time.monotonic() > deadline:
                log = "\n".join(self.log(name)[-15:])
                raise RackError(f"{name}: nothing in {timeout} s; {machine['state']} {machine['reason']}\n{log}")
            time.sleep(0.05)
        return machine

    def wait_for_state(self, name: str, state: str, timeout: float = 60.0) -> dict[str, Any]:
        """Return the machine once it is ``off``, ``agent``, ``os``, ``hung``, ..."""
        return self.wait_for(name, lambda machine: bool(machine["state"] == state), timeout)

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self._session.request(method, f"{self._url}/{path}", json=body, timeout=30)
        content: dict[str, Any] = answer.json()
        if answer.status_code >= 400:
            raise RackError(f"{method} {path}: {content['error']}")
        return content


class RackProcess:
    """``ingot-rack`` as a child process.

        with RackProcess(state_dir=..., machines=3, boot_url=...) as rack:
            rack.control.power(rack.machines[0]["name"], "on")

    Settings are those of RackConfig; the control port is any free one unless given.

    :param start: the words before its command: what has it run elsewhere, such as in a network namespace.
    """

    def __init__(
        self, state_dir: str | Path, ready_timeout: float = 60.0, start: Sequence[str] = (), **settings: Any
    ) -> None:
        self.state_dir = Path(state_dir)
        self.log_path = self.state_dir / "rack.log"
        self.description: dict[str, Any] = {}
        self._settings = {"control_port": 0, **settings, "state_dir": str(self.state_dir)}
        self._ready_timeout = ready_timeout
        self._start = start
        self._process: subprocess.Popen[str] | None = None
        self._control: RackControl | None = None

    @property
    def machines(self) -> list[dict[str, Any]]:
        """What there is to enroll: name, uuid, macs, bmc_address, bmc_port, memory_mb, disks, redfish."""
        found: list[dict[str, Any]] = self.description["machines"]
        return found

    @property
    def control(self) -> RackControl:
        if self._control is None:
            raise RackError("the rack is not running")
        return self._control

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start and wait until every port answers.

        :raises RackError: if they do not, with the end of the log.
        """
        self.state_dir.mkdir(parents=True, exist_ok=True)
        config = self.state_dir / "rack.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps(self._settings))
        command = [*self._start, sys.executable, "-m", "ingot.rack.main", "--config-file", str(config)]
        with self.log_path.open("a") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        line = self._first_line(self._process)
        if not line:
            self.stop()
            end = "\n".join(self.log_path.read_text().splitlines()[-5:])
            raise RackError(f"the rack did not start within {self._ready_timeout} s ({self.log_path}):\n{end}")
        self.description = json.loads(line)
        self._control = RackControl(self.description["control_url"])

    def _first_line(self, process: "subprocess.Popen[str]") -> str:
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.append(process.stdout.readline() if process.stdout else ""))
        reader.daemon = True
        reader.start()
        reader.join(self._ready_timeout)
        return lines[0] if lines else ""

    def stop(self) -> int | None:
        """Stop the rack; return its exit status."""
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is None:
            return None
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return process.returncode

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
