"""This conductor among all conductors: its entry in the database, its lease, which nodes it owns by the hash ring."""

import os
import threading
import time
from collections.abc import Callable

from oslo_log import log

from ingot.common import errors
from ingot.conductor import host_name_conflict
from ingot.conductor.task.task_manager import Services
from ingot.db import conductors, models
from ingot.db.engine import Database
from ingot.rpcapi import client, versions

LOG = log.getLogger(__name__)


class Membership:
    """Registers the conductor, keeps it alive, follows a drain and withdraws it.

    :ivar on_name_conflict: called when another process has taken this conductor's name: this one must stop.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._db = services.db
        self._rings = client.Rings(
            lambda: conductors.ring_members(self._db, services.heartbeat_timeout),
            time.monotonic,
            services.conf.hash_ring_reset_interval,
            services.conf.hash_partition_exponent,
        )
        self.on_name_conflict: Callable[[], None] = lambda: None
        self._entry: conductors.Entry | None = None
        self._judges_from = float("-inf")
        self._drained = self._stopping = False
        self._drain_lock = threading.Lock()

    def claim_name(self) -> None:
        """Check that the name is free; to be called before RPC is served under it.

        :raises ConfigurationError: another conductor has this one's name.
        """
        host_name_conflict.check(self._db, self._services.conf)

    def join(self) -> None:
        """Register, renew the lease for the first time, and follow a drain that was requested before the start."""
        enabled = self._services.hardware.list_enabled()
        self._warn_of_other_interfaces(enabled)
        self._warn_of_ambiguous_drivers()
        lease = self._services.lease
        moment = lease.now()
        self.register()
        lease.renew(moment)
        self._follow_drain()

    def register(self) -> None:
        """Write this conductor's entry, with what it has enabled."""
        hardware = self._services.hardware
        values = {
            "conductor_group": self._services.group,
            "process": host_name_conflict.identify_process(os.getpid()),
            "release": versions.current_version(),
            "rpc_version": versions.RPC_VERSION,
            "classic_drivers": sorted(hardware.classic_drivers),
        }
        self._entry = conductors.register(self._db, self._services.host, values, hardware.list_enabled())

    def keepalive(self) -> None:
        """Write a heartbeat, which renews the lease."""
        host, lease = self._services.host, self._services.lease
        moment = lease.now()
        if self._entry is None or not conductors.touch(self._db, self._entry):
            if host_name_conflict.find_registered(self._db, self._services.conf) is not None:
                LOG.critical("Another conductor has taken the name %s: this one stops", host)
                self.on_name_conflict()
                return
            LOG.warning("The entry of conductor %s is gone, as after a restored backup: it is made again", host)
            self.register()
        if seconds := lease.renew(moment):
            LOG.warning("No heartbeat for %.0f s; other conductors get time to write theirs", seconds)
            self._judges_from = moment + self._services.heartbeat_timeout
        self._follow_drain()

    def can_judge(self) -> bool:
        """Return whether conductors without a recent heartbeat are dead. After a time without database (or asleep) no
        heartbeat is recent, and all conductors get the time to write one."""
        lease = self._services.lease
        now = lease.now()
        return now >= self._judges_from and lease.covers(now)

    def _follow_drain(self) -> None:
        """Leave the rings when an operator has drained this conductor, and come back when that is over. Meanwhile it
        is alive: it finishes what runs and answers requests."""
        if self._entry is None or (drained := conductors.is_drained(self._db, self._entry)) == self._drained:
            return
        with self._drain_lock:
            if self._stopping:
                return
            if drained:
                self._services.leaving.set()
                conductors.confirm_drain(self._db, self._entry)
            else:
                self.register()
                self._services.leaving.clear()
            self._drained = drained
        self._rings.forget()
        LOG.warning(
            "Conductor %s %s", self._services.host, "is drained: others own its nodes" if drained else "is back"
        )

    def begin_leaving(self) -> None:
        """Begin nothing anymore, whatever a drain says."""
        with self._drain_lock:
            self._stopping = True
            self._services.leaving.set()

    def withdraw(self) -> None:
        """Leave the rings: other conductors own the nodes at once."""
        self._write_departure(conductors.withdraw)

    def unregister(self) -> None:
        """Go offline."""
        self._write_departure(conductors.unregister)

    def _write_departure(self, write: Callable[[Database, conductors.Entry], None]) -> None:
        if self._entry is None:
            return
        try:
            write(self._db, self._entry)
        except errors.ServiceUnavailable as exc:
            LOG.warning("Other conductors will notice the missing heartbeat of this one: %s", exc.message)

    def owns(self, node: models.Node) -> bool:
        """Return whether a node is this conductor's by the hash ring."""
        return self._services.serves(node) and self.owner(node) == self._services.host

    def owner(self, node: models.Node) -> str | None:
        """Return the host name of the conductor that owns a node; None if there is none."""
        try:
            return self._rings.owner(node.uuid, node.conductor_group, node.driver)
        except errors.NoConductor:
            return None

    def _warn_of_other_interfaces(self, enabled: list[conductors.EnabledInterface]) -> None:
        """Warn when another conductor has other interfaces for a hardware type (specification 004). That is no error:
        it cannot be avoided while conductors are upgraded one by one."""
        host = self._services.host
        found: dict[tuple[str, str], set[str]] = {}
        for entry in enabled:
            found.setdefault((host, entry.hardware_type), set()).update(_describe(entry))
        types = [hardware_type for _host, hardware_type in found]
        for row in conductors.enabled_interfaces(self._db, self._services.heartbeat_timeout, types):
            if row.hostname != host:
                found.setdefault((row.hostname, row.hardware_type), set()).update(_describe(row))
        for (hostname, hardware_type), interfaces in found.items():
            different = sorted(interfaces ^ found[host, hardware_type])
            if different:
                LOG.warning(
                    "Conductor %s has other interfaces enabled for %s: %s. Nodes may work on one and not on the other.",
                    hostname,
                    hardware_type,
                    ", ".join(different),
                )

    def _warn_of_ambiguous_drivers(self) -> None:
        """Warn when what is a hardware type here is a classic driver on another conductor, or the reverse."""
        host, hardware, timeout = self._services.host, self._services.hardware, self._services.heartbeat_timeout
        rows = conductors.enabled_interfaces(self._db, timeout, list(hardware.classic_drivers))
        others = {(row.hostname, row.hardware_type) for row in rows}
        classic = conductors.classic_drivers(self._db, timeout)
        others |= {(hostname, name) for hostname, _group, name in classic if name in hardware.hardware_types}
        for hostname, name in sorted(pair for pair in others if pair[0] != host):
            LOG.warning(
                "Driver %s is a hardware type on one of the conductors %s and %s and a classic driver on the other: "
                "rename one, or its nodes will not keep their interfaces.",
                name,
                hostname,
                host,
            )


def _describe(entry: conductors.EnabledInterface | conductors.InterfaceOnline) -> set[str]:
    """Return what of an enabled interface another conductor should have too."""
    pair = f"{entry.interface_type} {entry.interface_name}"
    return {pair, f"{pair} as default"} if entry.default else {pair}
