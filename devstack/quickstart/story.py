"""The quickstart's story: machines from unknown to active, one of them back again, and the proof of each claim."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openstack.baremetal.v1.node import Node

from quickstart import bmc, disks, timeline, user
from quickstart.children import SLOWNESS
from quickstart.display import Display
from quickstart.failure import Failure
from quickstart.image import DISK, KERNEL, RAMDISK
from quickstart.lab import BMC_USER, Lab

TIMEOUT = 180 * SLOWNESS
"""Seconds that the machines may take for one phase; on an idle laptop it is less than ten."""

Step = tuple[str, str, int, str]

_CORE = tuple(
    ("deploy", step, priority, "driver")
    for step, priority in (
        ("deploy", 100),
        ("write_image", 80),
        ("prepare_instance_boot", 60),
        ("tear_down_agent", 40),
        ("switch_to_tenant_network", 30),
        ("boot_instance", 20),
    )
)
_MIRROR: Step = (
    str(user.TEMPLATE_STEP["interface"]),
    str(user.TEMPLATE_STEP["step"]),
    90,
    f"template {user.TEMPLATE}",
)


def expected_steps(mirrored: bool) -> list[Step]:
    """Return a deployment's steps in order: interface, step, priority, what asked for it."""
    return sorted([*_CORE, *([_MIRROR] if mirrored else [])], key=lambda step: -step[2])


@dataclass
class Machine:
    """A machine of the rack and, once it is enrolled, its node.

    :param facts: what the rack says of it. :param mirrored: whether its root disk is to be a RAID-1.
    """

    facts: dict[str, Any]
    mirrored: bool
    node: Node
    config_drive: dict[str, Any]
    runs: list[timeline.Run] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def disks(self) -> list[Path]:
        return [Path(disk["path"]) for disk in self.facts["disks"]]


class Story:
    """Tells the story once.

    :param image_dir: where image, kernel and ramdisk are.
    """

    def __init__(self, lab: Lab, image_dir: Path, display: Display) -> None:
        self._lab = lab
        self._display = display
        self._image_path = image_dir / DISK
        self._image = user.Image(
            url=lab.files.url(DISK),
            sha256=hashlib.sha256(self._image_path.read_bytes()).hexdigest(),
            kernel=lab.files.url(KERNEL),
            ramdisk=lab.files.url(RAMDISK),
        )
        self._user = user.User(lab.api_url, self._report, TIMEOUT)
        self._machines: list[Machine] = []

    def tell(self) -> None:
        """Run everything.

        :raises Failure: something did not happen or is not as it must be.
        """
        try:
            self._enroll()
            self._manage()
            self._clean()
            self._deploy()
            self._show_timelines()
            self._prove()
            self._undeploy(self._machines[-1])
            self._check_console()
        finally:
            self._user.close()

    @property
    def _nodes(self) -> list[Node]:
        return [machine.node for machine in self._machines]

    # What happens

    def _enroll(self) -> None:
        self._display.heading(f"enroll {self._lab.count} machines: driver ipmi, BMCs on real UDP ports")
        for index, facts in enumerate(self._lab.machines):
            address = user.Bmc(facts["bmc_address"], facts["bmc_port"], BMC_USER, self._lab.bmc_password)
            node = self._user.enroll(facts["name"], address, facts["macs"], self._image)
            drive = user.config_drive(node, facts["macs"][0])
            self._machines.append(Machine(facts, mirrored=index == 0, node=node, config_drive=drive))
            self._display.say(
                f"  {node.name}  {node.id}  BMC {address.address}:{address.port}  {' '.join(facts['macs'])}"
            )

    def _manage(self) -> None:
        self._display.heading("manage: is each BMC there, and does it take the password?")
        self._ask("manage", "manageable")

    def _clean(self) -> None:
        written = sum(disks.fill_with_rubbish(disk) for machine in self._machines for disk in machine.disks)
        self._display.heading(f"provide: automated cleaning erases {written >> 20} MiB of a previous owner's data")
        self._ask("provide", "available")
        self._note_timelines(self._machines)
        for machine in self._machines:
            self._check_erased(machine)

    def _deploy(self) -> None:
        mirrored = ", ".join(machine.name for machine in self._machines if machine.mirrored)
        self._display.heading(f"deploy the image with a config drive; {mirrored} with template {user.TEMPLATE}")
        self._user.add_template()
        for machine in self._machines:
            self._user.choose_image(machine.node, self._image, machine.mirrored)
            self._user.validate(machine.node)
        for machine in self._machines:
            self._user.ask(machine.node, "active", machine.config_drive)
        self._user.wait(self._nodes, "active")
        self._display.settle()
        self._note_timelines(self._machines)

    def _undeploy(self, machine: Machine) -> None:
        self._display.heading(f"undeploy {machine.name}: tear down, automated cleaning, available again")
        self._user.ask(machine.node, "deleted")
        self._user.wait([machine.node], "available")
        self._display.settle()
        self._display.say("\n".join(f"  {line}" for line in timeline.lines(self._user.timeline(machine.node))))
        self._check_erased(machine)
        gone = self._user.read_nodes([machine.node])[0]
        if gone.instance_info:
            raise Failure(f"{machine.name} has still instance_info {gone.instance_info}")
        self._display.good(f"{machine.name}: available, instance_info empty")

    def _check_console(self) -> None:
        self._display.heading("the web console")
        shown = self._user.read_console(self._lab.console_url)
        if shown != sorted(machine.name for machine in self._machines):
            raise Failure(f"the console at {self._lab.console_url} shows the machines {shown}")
        self._display.good(f"it shows {', '.join(shown)}")

    def _ask(self, verb: str, state: str) -> None:
        for node in self._nodes:
            self._user.ask(node, verb)
        self._user.wait(self._nodes, state)
        self._display.settle()

    def _report(self, nodes: Sequence[Node]) -> None:
        """Show where the nodes are: state and step from the service, what runs and what is on disk from the rack."""
        self._lab.check()
        rows = {node.name: f"{node.provision_state:<14} {current_step(node)}".rstrip() for node in nodes}
        details = {}
        if self._display.is_terminal:
            for machine in self._lab.rack.machines():
                used = sum(disk["used"] for disk in machine["disks"]) / 2**20
                details[machine["name"]] = f"{used:5.1f} MiB, {machine['state']}"
        self._display.progress(rows, details)

    # What is shown and proved

    def _note_timelines(self, machines: Sequence[Machine]) -> None:
        """Keep what has just ended: the service shows the last flow of a node, or one that is asked for by its ID."""
        for machine in machines:
            machine.runs.append(self._user.timeline(machine.node))

    def _show_timelines(self) -> None:
        self._display.heading("what each part did, and how long it took")
        for machine in self._machines:
            for run in machine.runs:
                title, *table = timeline.lines(run)
                self._display.say("\n".join([f"  {machine.name}: {title}", *(f"  {row}" for row in table), ""]))

    def _prove(self) -> None:
        asked = "ipmitool over IPMI" if bmc.is_available() else "the service (ipmitool is not installed)"
        self._display.heading(f"proofs, from the disks' bytes, and from {asked}")
        for machine in self._machines:
            self._check_steps(machine)
            self._check_disks(machine)
            self._check_power(machine)

    def _check_steps(self, machine: Machine) -> None:
        found = [(step.interface, step.step, step.priority, step.origin) for step in machine.runs[-1].done]
        expected = expected_steps(machine.mirrored)
        if found != expected:
            raise Failure(f"{machine.name} was deployed by the steps {found}, but should be by {expected}")
        order = ", ".join(f"{step} {priority}" for _, step, priority, _ in found)
        self._display.good(f"{machine.name}: steps in order: {order}")

    def _check_disks(self, machine: Machine) -> None:
        written = machine.disks if machine.mirrored else machine.disks[:1]
        for disk in written:
            disks.check_image(disk, self._image_path, self._image.sha256)
            self._display.good(f"{machine.name}: {disk.name} read back has the image's sha256 {self._image.sha256}")
            names = disks.check_config_drive(disk, machine.config_drive)
            self._display.good(f"{machine.name}: {disk.name} config drive as given: {', '.join(names)}")
        for disk in machine.disks[len(written) :]:
            disks.check_erased(disk)
            self._display.good(f"{machine.name}: {disk.name} is empty, as it should be")

    def _check_power(self, machine: Machine) -> None:
        running = self._lab.rack.wait_for_state(machine.name, "os")
        node = self._user.read_nodes([machine.node])[0]
        claims = {"the service": ((node.power_state or "").removeprefix("power "), *self._user.boot_device(node))}
        if bmc.is_available():
            access = (machine.facts, BMC_USER, self._lab.bmc_password)
            claims["ipmitool"] = (bmc.power_state(*access), *bmc.boot_device(*access))
        for who, claim in claims.items():
            if claim != ("on", "disk", True):
                raise Failure(f"{machine.name}: {who} says power, boot device, persistent are {claim}")
        self._display.good(
            f"{machine.name}: power on, boot device disk for good, say {' and '.join(claims)}; {running['reason']}"
        )

    def _check_erased(self, machine: Machine) -> None:
        for disk in machine.disks:
            disks.check_erased(disk)
        self._display.good(f"{machine.name}: {len(machine.disks)} disks read back as zeros from end to end")


def current_step(node: Node) -> str:
    """Return the step that a node is in, empty if it is in none."""
    step = node.deploy_step or node.clean_step or {}
    return f"{step['interface']}.{step['step']}" if step else ""
