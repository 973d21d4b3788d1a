"""The quickstart's machines and services: their configuration, their ports, starting and stopping them."""

import configparser
import contextlib
import json
import secrets
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from ingot.rack import ports
from ingot.rack.process import RackControl
from quickstart.children import Child
from quickstart.failure import Failure
from quickstart.files import FileServer

BMC_USER = "admin"
DISKS_PER_MACHINE = 2


class Lab:
    """Ingot on SQLite, a rack of machines, and a server for their images, all on free ports of 127.0.0.1.

        with Lab(work_dir, image_dir, machines=3) as lab:
            lab.api_url, lab.machines, lab.files.url("disk.img")

    :param work_dir: gets configuration, database, disks and logs.
    :param image_dir: what the file server serves.
    """

    def __init__(self, work_dir: Path, image_dir: Path, machines: int) -> None:
        self.work_dir = work_dir
        self.count = machines
        self.bmc_password = secrets.token_urlsafe(12)
        self.machines: list[dict[str, Any]] = []
        self._image_dir = image_dir
        self._port = ports.tcp()
        self._stack = contextlib.ExitStack()
        self._children: list[Child] = []

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def console_url(self) -> str:
        return f"{self.api_url}/console/"

    @property
    def logs(self) -> Path:
        return self.work_dir / "logs"

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        try:
            self.files = FileServer(self._image_dir, self.logs / "files.log")
            self._stack.callback(self.files.stop)
            # Stopped in the opposite order: without its BMCs, Ingot would wait for their answers.
            rack = self._start("ingot-rack", *self._rack())
            ingot = self._start("ingot", *self._ingot())
            self.rack = self._wait_for_rack(rack)
            self.machines = self.rack.machines()
            ingot.wait_for(self._api_answers)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def check(self) -> None:
        """Make sure that everything still runs.

        :raises Failure: naming what does not.
        """
        for child in self._children:
            child.check()

    def _start(self, name: str, command: list[str], output: Path | None = None) -> Child:
        child = Child(name, command, self.logs / f"{name}.log", output)
        self._stack.callback(child.stop)
        self._children.append(child)
        return child

    def _ingot(self) -> tuple[list[str]]:
        """Write the configuration; return the command that uses it. What is not set here is as an operator finds it."""
        settings = {
            "DEFAULT": {"host": "quickstart", "auth_strategy": "noauth", "state_path": str(self.work_dir)},
            "api": {"host_ip": "127.0.0.1", "port": str(self._port)},
            # The machines are on this host.
            "service_catalog": {"endpoint_override": f"http://127.0.0.1:{self._port}"},
            "database": {"connection": f"sqlite:///{self.work_dir / 'ingot.sqlite'}"},
            "deploy": {"url_denied_networks": ""},  # the images are on this host
        }
        parser = configparser.RawConfigParser()
        parser.read_dict(settings)
        path = self.work_dir / "ingot.conf"
        with path.open("w") as file:
            parser.write(file)
        return ([program("ingot"), "--config-file", str(path)],)

    def _rack(self) -> tuple[list[str], Path]:
        """Write the rack's configuration; return its command, and the file for what it says when it is ready."""
        settings = {
            "machines": self.count,
            "disks": DISKS_PER_MACHINE,
            "bmc_base_port": ports.udp(self.count),
            "username": BMC_USER,
            "password": self.bmc_password,
            "boot_url": f"{self.api_url}/boot/ipxe/{{mac}}",
            "state_dir": str(self.work_dir / "rack"),
            "control_port": 0,
        }
        path = self.work_dir / "rack.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(settings, indent=2))
        return [program("ingot-rack"), "--config-file", str(path)], self.work_dir / "rack-ready.json"

    def _wait_for_rack(self, rack: Child) -> RackControl:
        described = self.work_dir / "rack-ready.json"

        def description() -> dict[str, Any] | None:
            text = described.read_text()
            return json.loads(text) if text.endswith("\n") else None

        found = rack.wait_for(description)
        control = RackControl(found["control_url"])
        self._stack.callback(control.close)
        return control

    def _api_answers(self) -> bool | None:
        try:
            with urllib.request.urlopen(self.api_url, timeout=5) as answer:  # noqa: S310 - our own address
                return bool(answer.status == 200) or None
        except (urllib.error.URLError, OSError):
            return None


def program(name: str) -> str:
    """Return the path of a command of the environment that runs this.

    :raises Failure: it is not there.
    """
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise Failure(f"{path} does not exist: Ingot is not installed in this environment")
    return str(path)
