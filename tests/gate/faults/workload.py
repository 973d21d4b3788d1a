"""Who works while faults happen: a tenant for each machine, who deploys and undeploys it, and notes what was asked for
and what became of it."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.gate.faults.client import Operator, Overdue, Refused
from tests.gate.faults.site import ENGRAVED, Site

ENDS = {
    "manage": ("manageable", "enroll"),
    "provide": ("available", "clean failed"),
    "active": ("active", "deploy failed"),
    "deleted": ("available", "clean failed", "error"),
    "service": ("active", "service failed"),
}
"""The states in which what a verb asks for has ended, the good one first."""

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "service": {"service_steps": [{"interface": "vendor", "step": "engrave", "args": {}, "order": 1}]}
}

_MOST_FAILURES = 5
_BOOT_S = 60.0
_ENGRAVED_ONE_OF = 5


@dataclass
class Request:
    """Something that was accepted.

    :param machine: of the rack.
    :param known: how it is known: see ``Operator.provision``.
    :param end: the state that it ended in; empty: it has not ended.
    """

    machine: str
    node: str
    verb: str
    known: str
    asked_at: float
    ended_at: float = 0.0
    end: str = ""
    error: str = ""

    @property
    def went_well(self) -> bool:
        return self.end == ENDS[self.verb][0]


class Workload:
    """All tenants.

    :param is_needed: called before each deployment: is another one needed, when so many were begun?
    :param patience: seconds after which something is stuck.
    :ivar requests: all that was accepted.
    :ivar complaints: what tenants found to be wrong.
    """

    def __init__(self, site: Site, is_needed: Callable[[int], bool], patience: float) -> None:
        self.site = site
        self.patience = patience
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        self._is_needed = is_needed
        self._begun = 0
        self._lock = threading.Lock()
        self.tenants = [Tenant(self, index) for index in range(len(site.victims["machines"]))]

    def start(self) -> None:
        for tenant in self.tenants:
            tenant.start()

    def wait(self) -> None:
        for tenant in self.tenants:
            tenant.join()

    def another(self) -> bool:
        """Return whether another deployment is needed."""
        with self._lock:
            needed = self._is_needed(self._begun)
            self._begun += needed
            return needed

    def answers(self) -> Counter[str]:
        """Count the API's answers by status."""
        return sum((tenant.operator.tally for tenant in self.tenants), start=Counter())


class Tenant(threading.Thread):
    """A tenant with one machine.

    :ivar uuid: of the node that stands for the machine.
    """

    def __init__(self, work: Workload, index: int) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._site = work.site
        self._machine = work.site.lab.rack.machines[index]
        self._access = work.site.lab.access(index)
        self._engraved = index % _ENGRAVED_ONE_OF == 0
        self.machine: str = self._machine["name"]
        self.uuid: str = self._machine["uuid"]
        self.operator = Operator(work.site.lab.url, work.patience)

    def run(self) -> None:
        try:
            self._enroll()
            number = 0
            while self._work.another():
                if number:
                    self._make("deleted")
                self._deploy(number)
                number += 1
        except (Overdue, Refused) as exc:
            self._complain(str(exc))
        except Exception as exc:  # noqa: BLE001 reported with the others
            self._complain(repr(exc))

    def _complain(self, what: str) -> None:
        self._work.complaints.append(f"{self.machine} ({self.uuid}): {what}")

    def _enroll(self) -> None:
        """Enroll the machine, again whenever an answer is lost: uuid and address make it the same node."""
        driver = "engraved" if self._engraved else "ipmi"
        node = {"uuid": self.uuid, "name": self.machine, "driver": driver, "driver_info": self._access}
        self.operator.create("/v1/nodes", node)
        for mac in self._machine["macs"]:
            self.operator.create("/v1/ports", {"node_uuid": self.uuid, "address": mac})
        if self._engraved:
            self.operator.request("PUT", f"/v1/nodes/{self.uuid}/traits/{ENGRAVED}")
        self._make("manage")
        self._make("provide")

    def _deploy(self, number: int) -> None:
        traits = {"traits": [ENGRAVED]} if self._engraved else {}
        self.operator.patch(f"/v1/nodes/{self.uuid}", {"/instance_info": self._site.image_info(number) | traits})
        self._make("active")
        if not self._boots(number):
            self._complain(f"deployment {number} is active, and the machine does not run its image")
        if self._engraved:
            self._make("service")

    def _boots(self, number: int) -> bool:
        """Return whether the machine runs its image, once it has had the time to boot."""
        until = time.monotonic() + _BOOT_S
        while not self._site.runs_image(self.machine, number):
            if time.monotonic() > until:
                return False
            time.sleep(0.5)
        return True

    def _make(self, verb: str) -> None:
        """Request a verb until it ends well: a machine at fault may make it fail a few times.

        :raises Refused: it fails for ever.
        """
        for _ in range(_MOST_FAILURES):
            if (request := self._once(verb)).went_well:
                return
            if self.operator.node(self.uuid)["maintenance"]:
                self.operator.request("DELETE", f"/v1/nodes/{self.uuid}/maintenance")
            if request.end == "clean failed":
                verb = "provide"
        raise Refused(f"{verb} failed {_MOST_FAILURES} times, the last time by: {request.error}")

    def _once(self, verb: str) -> Request:
        request = Request(self.machine, self.uuid, verb, "", time.time())
        request.known = self.operator.provision(self.uuid, verb, **_ARGUMENTS.get(verb, {}))
        self._work.requests.append(request)
        node = self.operator.end_of(self.uuid, ENDS[verb])
        request.ended_at, request.end = time.time(), node["provision_state"]
        request.error = node["last_error"] or ""
        return request
