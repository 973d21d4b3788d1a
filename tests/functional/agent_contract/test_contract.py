"""The simulated agent and Ingot say to each other what the real agent and Ingot do."""

import fnmatch
from typing import Any, NamedTuple

from tests.functional.agent_contract import acts, recordings
from tests.functional.agent_contract.recorder import Recorder
from tests.functional.deployment.lab import Lab


class Allowed(NamedTuple):
    """A difference that is meant.

    :param kind: of exchange, with wildcards; so is the place in it.
    """

    kind: str
    place: str
    reason: str

    def covers(self, kind: str, place: str) -> bool:
        return fnmatch.fnmatchcase(kind, self.kind) and fnmatch.fnmatchcase(place, self.place)


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


class ContractTest(acts.Acts):
    """Each act with a simulated machine."""

    def start(self, boot_mode: str, **fields: Any) -> None:
        self.recorder = self.useFixture(Recorder())
        options = {
            "service_catalog": {"endpoint_override": self.recorder.url},
            "deploy": {"erase_devices_priority": 0, "erase_devices_metadata_priority": 10},
        }
        self.lab = Lab(options=options)
        (self.recorder.service,) = self.lab.urls
        self.useFixture(self.lab)
        properties = {"capabilities": f"boot_mode:{boot_mode}"}
        self.uuid = self.lab.enroll(properties=properties, resource_class="baremetal", **fields)
        self.user = self.lab.user
        self.name = self.lab.rack.machines[0]["name"]
        self.serial = self.lab.rack.control.machine(self.name)["disks"][1]["serial"]
        self.arguments = "%default%"

    def ask(self, verb: str, state: str, **more: Any) -> None:
        self.user.provision(self.uuid, verb, **more)
        self.lab.reach(self.uuid, state)

    def choose_image(self, **more: Any) -> None:
        self.lab.set_image(self.uuid, **more)

    def wait_until_it_says(self, text: str) -> None:
        log = self.lab.rack.control.log
        self.lab.eventually(lambda: any(text in line for line in log(self.name)), f"the machine says {text!r}")

    def finish(self, act: str) -> None:
        """Check that the same was said as with the real agent, but for allowed differences, all of which occur."""
        allowed, needed, found = ALLOWED.get(act, ()), set(), []
        for kind, place, real, simulated in recordings.stored(act).differences(self.recorder.recording()):
            rows = {row for row in allowed if row.covers(kind, place)}
            needed |= rows
            if not rows:
                found.append(f"{kind}: {place}: the real agent has {real}, the simulated one {simulated}")
        self.assertEqual("", "\n".join(found))
        self.assertEqual(needed, set(allowed))
