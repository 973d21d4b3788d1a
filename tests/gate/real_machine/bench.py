"""A workbench: Ingot in one process, a QEMU machine behind its BMC, a file server, and an eye on the console."""

import io
import json
import os
import pathlib
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import fixtures

from ingot.rack import ports
from ingot.rack.process import RackProcess
from tests import patience
from tests.functional.agent_contract.recorder import Recorder
from tests.functional.deployment import lab
from tests.gate.environments import ROOT
from tests.gate.real_machine.held_files import HeldFiles

PATIENCE_S = patience.seconds(900)
"""For one phase of a deployment. Without KVM, on a computer that does other things, most take one or two minutes."""

LONGEST_PAUSE_S = 1
"""Between two looks at a machine, from which these take processor time."""

MACHINE = {"machine_kind": "qemu", "cpus": 1, "memory": 1024}
"""Settings of a rack whose machines boot the small agent.

Several are emulated beside each other: two processors of one machine would wait for each other's locks.
"""

HOST = "10.0.2.2"
"""This computer, to a QEMU machine."""

PLACE = pathlib.Path(os.environ.get("INGOT_TEST_REAL_MACHINE", ROOT / ".gate" / "real-machine"))
MARKER = "INGOT-IMAGE "
STORY = {"delete_configuration_priority": 20, "fast_track": True}
"""Cleaning dissolves arrays; agents are left running that the next change may use."""

PATIENT = {"command_timeout": 120, "connect_timeout": 60}
"""With agents: three emulated machines share two processors, where one needs seconds to agree on keys."""

_PASSWORD = "a password"
_MIRROR = {
    "interface": "raid",
    "step": "apply_configuration",
    "priority": 90,
    "args": {
        "raid_config": {
            "logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}]
        },
        "delete_existing": True,
    },
}
_FAILED = ("error", "failed")


class System(NamedTuple):
    """What a deployed system says of itself.

    :param facts: ``root``, ``firmware``, ``marker``, ``config``, ``instance``.
    :param arrays: by device: ``level``, ``disks``, ``degraded``, ``members`` (serials of disks, with commas).
    """

    facts: dict[str, str]
    arrays: dict[str, dict[str, str]]


class Bench(fixtures.Fixture):
    """Everything for deployments of one machine with two disks; its files stay in :data:`PLACE` until the next run.

    Ingot leaves agents running that the next change may use (fast track), and soon misses one that is silent.

    :param name: of the run.
    :param disk_sizes: of the machine's two disks.
    :param deploy: options of Ingot beside those that every run has, in the group of that name.
    :param recorder: stands between agents and Ingot; without one they connect to each other directly.
    :param rack: further settings of the rack.
    :param options: further options of Ingot, by group.
    :ivar files: what has kernel, ramdisk and image.
    """

    MIRROR = "CUSTOM_MIRROR"
    """The trait of a node whose system is to be on a RAID-1."""

    def __init__(
        self,
        name: str,
        disk_sizes: tuple[str, str] = ("5G", "5G"),
        deploy: Mapping[str, Any] = STORY,
        recorder: Recorder | None = None,
        rack: Mapping[str, Any] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__()
        self._options = options or {}
        self._rack = rack or {}
        self._recorder = recorder
        self._deploy = deploy
        self.directory = PLACE / "runs" / name
        self._disk_sizes = disk_sizes
        self._now = ""

    def _setUp(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self._began = time.monotonic()
        self.image = json.loads((PLACE / "image" / "manifest.json").read_text())
        self.files = self.useFixture(HeldFiles(PLACE))
        self._port = ports.tcp()
        self._agents_port = self._port
        if self._recorder is not None:
            self._agents_port = self.useFixture(self._recorder).port
            self._recorder.service = f"http://127.0.0.1:{self._port}"
        self.rack = RackProcess(
            self.directory / "rack",
            machines=1,
            machine=[{"disk_sizes": self._disk_sizes}],
            bmc_base_port=0,
            password=_PASSWORD,
            **MACHINE,
            **{"boot_url": f"http://{{host}}:{self._port}/boot/ipxe/{{mac}}", **self._rack},
        )
        self.addCleanup(self.rack.stop)
        self.rack.start()
        (self.machine,) = self.rack.machines
        self.name: str = self.machine["name"]
        self.user = lab.User(f"http://127.0.0.1:{self._port}")
        self._start_ingot()

    def _start_ingot(self) -> None:
        config = self.directory / "ingot.conf"
        config.write_text(self._configuration())
        self._ingot = lab.Process(["ingot", "--config-file", str(config)], self.directory / "ingot.log")
        self.addCleanup(self._ingot.stop)
        self._ingot.start()
        self.eventually(lambda: self.user.get("/v1/conductors")["conductors"], "Ingot serves")

    def _configuration(self) -> str:
        groups: dict[str, dict[str, Any]] = {
            "DEFAULT": {"host": "bench", "auth_strategy": "noauth", "state_path": self.directory, "debug": True},
            "api": {
                "host_ip": "127.0.0.1",
                "port": self._port,
                "public_endpoint": f"http://{HOST}:{self._port}",
                "ramdisk_heartbeat_timeout": 40,
            },
            "deploy": {
                "deploy_kernel": self.url("deploy/vmlinuz"),
                "deploy_ramdisk": self.url("deploy/initrd.img"),
                "erase_devices_priority": 0,
                "erase_devices_metadata_priority": 10,
                "external_http_url": f"http://127.0.0.1:{self._port}",  # BMCs are processes of this computer
                **self._deploy,
            },
            "conductor": {"force_power_state_during_sync": False},  # what is deployed switches itself off
            "agent": PATIENT,
            "pxe": {"kernel_append_params": "console=ttyS0,115200 quiet"},
            "service_catalog": {"endpoint_override": f"http://{HOST}:{self._agents_port}"},
        }
        for group, values in self._options.items():
            groups[group] = {**groups.get(group, {}), **values}
        lines = ([f"[{group}]", *(f"{k} = {v}" for k, v in values.items())] for group, values in groups.items())
        return "\n".join(line for group in lines for line in group) + "\n"

    @property
    def server(self) -> str:
        """Host and port of the API, as the machine sees it."""
        return f"{HOST}:{self._port}"

    def url(self, path: str) -> str:
        """Return the address of a built file, as the machine sees it."""
        return f"http://{HOST}:{self.files.port}/{path}"

    # What is seen

    def say(self, text: str) -> None:
        """Add a line to the run's story."""
        with (PLACE / "story.txt").open("a") as story:
            story.write(f"{self.directory.name:>6} {time.monotonic() - self._began:7.1f} s  {text}\n")

    def eventually(self, check: Callable[[], Any], what: str) -> Any:
        """Return the first true answer of ``check``; fail with the ends of logs when it is too late."""
        return lab.eventually(check, what, PATIENCE_S, self.logs, LONGEST_PAUSE_S)

    def logs(self, lines: int = 40) -> str:
        """Return the ends of Ingot's log and of the machine's."""
        ingot = (self.directory / "ingot.log").read_text(errors="replace").splitlines()[-lines:]
        return "\n".join([*ingot, "---", *self.rack.control.log(self.name)[-lines:]])

    def log(self) -> list[str]:
        """Return the machine's log since it was last switched on, with its console's unfinished line."""
        log = self.rack.control.log(self.name)
        starts = [number for number, line in enumerate(log) if " on: QEMU process" in line]
        return [*log[starts[-1] if starts else 0 :], self.rack.control.machine(self.name)["prompt"]]

    def console(self) -> list[str]:
        """Return what the test image has said since the machine was last switched on."""
        return [line.partition(MARKER)[2] for line in self.log() if MARKER in line]

    def has_said(self, text: str) -> bool:
        """Return whether the machine's console has shown a text since the machine was last switched on."""
        return any(text in line for line in self.log())

    def wait_for_text(self, text: str) -> None:
        """Wait until the machine's console has shown a text since the machine was last switched on."""
        self.eventually(lambda: self.has_said(text), f"the console shows {text!r}")

    def type(self, text: str) -> None:
        """Type a line on the machine's console."""
        self.rack.control.type(self.name, f"{text}\n")

    def agent_logs(self, uuid: str) -> list[dict[str, Any]]:
        """Return the logs of the node's agents that Ingot has kept, the newest last."""
        logs: list[dict[str, Any]] = self.user.get(f"/ingot/v1/nodes/{uuid}/logs")["logs"]
        return sorted(logs, key=lambda log: str(log["created_at"]))

    def text_of(self, uuid: str, log: Mapping[str, Any]) -> str:
        """Return everything in kept logs of an agent, as a text."""
        content = self.user.request("GET", f"/ingot/v1/nodes/{uuid}/logs/{log['uuid']}").content
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            files = [archive.extractfile(member) for member in archive.getmembers()]
            return "\n".join(file.read().decode(errors="replace") for file in files if file)

    def disk(self, number: int) -> dict[str, Any]:
        """Return a disk of the machine: serial, path, ..."""
        disk: dict[str, Any] = self.rack.control.machine(self.name)["disks"][number]
        return disk

    @property
    def kernel_arguments(self) -> str:
        """The agent's kernel arguments on this machine beside those of all machines."""
        return f"%default% {self.machine['kernel_arguments']}"

    # What a user does

    def enroll(self, boot_mode: str, **fields: Any) -> str:
        """Enroll the machine; return the node's uuid.

        :param fields: further ones of the node.
        """
        body = {
            "name": self.name,
            "driver": "ipmi",
            "driver_info": {
                "ipmi_address": self.machine["bmc_address"],
                "ipmi_port": self.machine["bmc_port"],
                "ipmi_username": "admin",
                "ipmi_password": _PASSWORD,
                "kernel_append_params": self.kernel_arguments,
            },
            "properties": {"capabilities": f"boot_mode:{boot_mode}"},
            "resource_class": "baremetal",
            "deploy_interface": "direct",
            "inspect_interface": "agent",
            "rescue_interface": "agent",
            "raid_interface": "agent",
            **fields,
        }
        uuid: str = self.user.post("/v1/nodes", body)["uuid"]
        for mac in self.machine["macs"]:
            self.user.post("/v1/ports", {"node_uuid": uuid, "address": mac})
        self.say(f"enrolled as {uuid}, {boot_mode}")
        return uuid

    def choose_image(self, uuid: str, name: str, **more: Any) -> None:
        """Select the test image: ``image.raw`` or ``image.qcow2``."""
        info = {
            "image_source": self.url(f"image/{name}"),
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": self.image["sha256"][name],
            **more,
        }
        self.user.patch(f"/v1/nodes/{uuid}", {"/instance_info": info})

    def request_mirror(self, uuid: str) -> None:
        """Give a node the trait :attr:`MIRROR`, and the deployment template of that name."""
        self.user.post("/v1/deploy_templates", {"name": self.MIRROR, "steps": [_MIRROR]})
        self.user.put(f"/v1/nodes/{uuid}/traits/{self.MIRROR}", None)

    def ask(self, uuid: str, verb: str, state: str, **more: Any) -> dict[str, Any]:
        """Request a change of the provision state and wait for the result; report what happens meanwhile."""
        self.start(uuid, verb, **more)
        return self.reach(uuid, state)

    def start(self, uuid: str, verb: str, **more: Any) -> None:
        """Request a change of the provision state."""
        self.say(f"{verb}")
        self.user.provision(uuid, verb, **more)

    def reach(self, uuid: str, state: str) -> dict[str, Any]:
        """Wait until a change of the provision state has ended, in this state and in no other."""
        node: dict[str, Any] = self.eventually(lambda: self._arrived(uuid, state), f"the node is {state}")
        self._tell_timeline(uuid)
        if node["last_error"]:
            self.say(f"    {node['last_error']}")
        return node

    def agent(self, uuid: str) -> str:
        """Wait for the agent; return its own address, also where Ingot knows the recorder's."""
        url: str = self.eventually(
            lambda: self.user.node(uuid)["driver_internal_info"].get("agent_url"), "the agent has called"
        )
        url = self._recorder.agents[-1] if self._recorder else url
        self.say(f"the agent called from {url}")
        return url

    def _arrived(self, uuid: str, state: str) -> dict[str, Any] | None:
        node = self.user.node(uuid)
        found = node["provision_state"]
        self._tell_step(node)
        if (found != state and found.endswith(_FAILED)) or (node["last_error"] and found == "enroll"):
            raise AssertionError(f"{found} instead of {state}: {node['last_error']}\n{self.logs()}")
        return node if found == state and node["reservation"] is None else None

    def _tell_step(self, node: Mapping[str, Any]) -> None:
        step = node["deploy_step"] or node["clean_step"]
        now = f"{node['provision_state']}: {step['interface']}.{step['step']}" if step else str(node["provision_state"])
        if now != self._now:
            self._now = now
            self.say(f"  {now}")

    def _tell_timeline(self, uuid: str) -> None:
        answer = self.user.request("GET", f"/ingot/v1/nodes/{uuid}/timeline")
        for step in answer.json().get("steps", ()) if answer.ok else ():
            self.say(f"    {step['interface']}.{step['step']} {step['state']} {step.get('duration', '')}")

    def wait_for_image(self) -> System:
        """Wait until the deployed system has said everything."""
        lines: list[str] = self.eventually(lambda: "ready" in (said := self.console()) and said, "the image runs")
        for line in lines:
            self.say(f"    {line}")
        found = [dict(_pairs(line)) for line in lines]
        facts = {name: value for one in found if "array" not in one for name, value in one.items()}
        return System(facts, {one["array"]: one for one in found if "array" in one})

    def check_facts(self, system: System, uuid: str, firmware: str) -> None:
        """Check that the system runs with this firmware, from the selected image and with its config drive.

        :raises AssertionError: it does not; the message has what it says of itself.
        """
        expected = {"firmware": firmware, "marker": self.image["marker"], "instance": uuid}
        if expected.items() - system.facts.items():
            raise AssertionError(f"the system says {system.facts}, expected is {expected}")

    def check_mirror(self, system: System) -> None:
        """Check that the system runs on a whole RAID-1 of both disks.

        :raises AssertionError: it does not.
        """
        mirror = system.arrays[system.facts["root"].rpartition("p")[0]]
        serials = sorted(self.disk(number)["serial"] for number in range(2))
        found = (mirror["level"], mirror["disks"], mirror["degraded"], sorted(mirror["members"].split(",")))
        if found != ("raid1", "2", "0", serials):
            raise AssertionError(f"the system says {mirror}, expected is a whole RAID-1 of {serials}")


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    for word in line.split():
        name, _, value = word.partition("=")
        yield name, value
