"""The simulated agent and Ingot say to each other what the real agent and Ingot do."""

import fnmatch
from typing import Any, NamedTuple

import testtools

from tests.functional.agent_contract import recordings
from tests.functional.agent_contract.recorder import Recorder
from tests.functional.deployment import lab

MIRROR = {"interface": "raid", "step": "apply_configuration", "priority": 90, "args": lab.MIRROR}
TEMPLATE = "CUSTOM_MIRROR"


class Allowed(NamedTuple):
    """A difference that is meant.

    :param kind: of exchange, with wildcards; so is the place in it.
    """

    kind: str
    place: str
    reason: str


ALLOWED: dict[str, tuple[Allowed, ...]] = {
    "look": (
        Allowed(
            "POST /v1/continue_inspection 202",
            "request/body/inventory/bmc_*address",
            "a machine in QEMU does not see its BMC from the inside; one of metal does, and so does a simulated one",
        ),
    )
}
"""By act."""


class ContractTest(testtools.TestCase):
    """Each act as tests/gate/real_machine performs it with the real agent."""

    def start(self, boot_mode: str, root_device: dict[str, str], **fields: Any) -> None:
        self.recorder = self.useFixture(Recorder())
        options = {
            "service_catalog": {"endpoint_override": self.recorder.url},
            "deploy": {"erase_devices_priority": 0, "erase_devices_metadata_priority": 10},
        }
        self.lab = lab.Lab(options=options)
        (self.recorder.service,) = self.lab.urls
        self.useFixture(self.lab)
        properties = {"capabilities": f"boot_mode:{boot_mode}", "root_device": root_device}
        self.uuid = self.lab.enroll(properties=properties, resource_class="baremetal", **fields)

    def ask(self, verb: str, state: str, **more: Any) -> dict[str, Any]:
        self.lab.user.provision(self.uuid, verb, **more)
        return self.lab.reach(self.uuid, state)

    def deploy(self, **more: Any) -> None:
        self.lab.set_image(self.uuid, **more)
        self.ask("active", "active", configdrive={"meta_data": {"uuid": self.uuid, "name": "simulated"}})

    def check(self, act: str) -> None:
        """The same was said as in an act with the real agent, but for what is allowed; nothing is allowed in vain."""
        allowed, needed, found = ALLOWED.get(act, ()), set(), []
        for kind, place, real, simulated in recordings.stored(act).differences(self.recorder.recording()):
            rows = {
                row for row in allowed if fnmatch.fnmatchcase(kind, row.kind) and fnmatch.fnmatchcase(place, row.place)
            }
            needed |= rows
            if not rows:
                found.append(f"{kind}: {place}: the real agent has {real}, the simulated one {simulated}")
        self.assertEqual("", "\n".join(found))
        self.assertEqual(needed, set(allowed))

    def test_bios(self) -> None:
        self.start("bios", {"serial": "RACK0000D01"})
        self.lab.make_available(self.uuid)
        self.deploy()
        self.check("bios")

    def test_uefi(self) -> None:
        self.start("uefi", {}, raid_interface="agent")
        self.lab.make_available(self.uuid)
        self.lab.user.post("/v1/deploy_templates", {"name": TEMPLATE, "steps": [MIRROR]})
        self.lab.user.put(f"/v1/nodes/{self.uuid}/traits/{TEMPLATE}", None)
        self.deploy(traits=[TEMPLATE])
        self.check("uefi")

    def test_errors(self) -> None:
        self.start("bios", {"serial": "no such"}, automated_clean=False)
        self.lab.make_available(self.uuid)
        self.lab.set_image(self.uuid)
        arguments = "/driver_info/kernel_append_params"
        self.lab.user.patch(f"/v1/nodes/{self.uuid}", {arguments: "%default% ipa-ironic-api-version=1.67"})
        self.lab.user.provision(self.uuid, "active")
        self.lab.eventually(self.was_refused_without_tls, "the agent was refused")
        self.ask("deleted", "available")
        self.lab.user.patch(f"/v1/nodes/{self.uuid}", {arguments: "%default%"})
        self.lab.set_image(self.uuid)
        self.ask("active", "deploy failed")
        self.check("errors")

    def was_refused_without_tls(self) -> bool:
        log = self.lab.rack.control.log(self.lab.rack.machines[0]["name"])
        return any("TLS is required by configuration" in line for line in log)

    def test_look(self) -> None:
        self.start("uefi", {}, inspect_interface="agent")
        self.ask("manage", "manageable")
        self.lab.user.provision(self.uuid, "inspect")
        self.lab.eventually(lambda: self.lab.user.node(self.uuid)["inspection_finished_at"], "the inventory is there")
        self.lab.reach(self.uuid, "manageable")
        self.check("look")
