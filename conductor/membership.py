"""This conductor among all conductors: its name and entry in the database, its lease, its nodes by the hash ring."""

import collections
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from oslo_log import log

from ingot.common import errors
from ingot.conductor.task.task_manager import Services
from ingot.db import conductors, models
from ingot.db.engine import Database
from ingot.rpcapi import client, versions

LOG = log.getLogger(__name__)

_PROC = Path("/proc")
_ENDED = ("Z", "X")
_PAUSE = 0.5


def identify_process(pid: int | str) -> str:
    """Return an identity of a process that no other has or had.

    It has the host's boot, the namespace of process ids, the id in it, and the moment of its start. Those that the
    operating system does not know are empty.
    """
    try:
        where = f"{(_PROC / 'sys/kernel/random/boot_id').read_text().strip()} {os.readlink(_PROC / 'self/ns/pid')}"
    except OSError:
        where = " "
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return f"{where} {pid} "
    state, *rest = stat.rpartition(")")[2].split()  # its name, in brackets, may have brackets and blanks
    return f"{where} {pid} {'' if state in _ENDED else rest[18]}"


def is_running(identity: str | None) -> bool | None:
    """Return whether a process runs, as :func:`identify_process` named it; None: that cannot be seen from here."""
    *where, pid, started = (identity or "   ").split(" ")
    *here, _pid, now = identify_process(pid).split(" ")
    return started == now if all((*where, started)) and where == here else None


class Membership:
    """Registers the conductor, keeps it alive, follows a drain and withdraws it.

    A name has one process: two would take each other's locks for their own, left over from a process before, and repeat
    each other's steps.

    :ivar on_name_conflict: called when another process has taken this conductor's name: this one must stop.
    :ivar dead_hosts: the conductors that the last sweep found dead.
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
        self.dead_hosts: frozenset[str] = frozenset()
        self.others: frozenset[str] = frozenset()
        self._others_or_end = threading.Event()
        self._entry: conductors.Entry | None = None
        self._judges_from = float("-inf")
        self._drained = self._stopping = False
        self._drain_lock = threading.Lock()

    def claim_name(self) -> None:
        """Check that the name ``[DEFAULT] host`` is free; to be called before RPC is served under it.

        A conductor that was killed here does not delay the next one. Of one that was killed elsewhere (another
        container, or before a reboot) it takes two heartbeats, or ``heartbeat_timeout`` since its last, to be sure.

        :raises Occupied: another conductor has this one's name.
        """
        other = self._find_registered()
        if other is None or other.process == identify_process(os.getpid()):
            return
        seen = is_running(other.process)
        if seen or (seen is None and self._has_new_heartbeat(other)):
            raise errors.Occupied(
                option="[DEFAULT] host",
                value=self._services.host,
                allowed=f"A conductor of this name works already (process {other.process or 'unknown'!r}: boot id, "
                "namespace, process id, start): stop it, or give each conductor a name of its own.",
            )

    def _find_registered(self) -> conductors.Conductor | None:
        """Return the conductor that has the name, if it did not end in order and may be alive."""
        try:
            found = conductors.get(self._db, self._services.host, self._services.heartbeat_timeout)
        except errors.NotFound:
            return None
        return found if found.alive else None

    def _has_new_heartbeat(self, other: conductors.Conductor) -> bool:
        until = time.monotonic() + 2 * self._services.conf.conductor.heartbeat_interval + _PAUSE
        LOG.info(
            "A conductor %s was heard a moment ago; this one waits to see whether it is alive", self._services.host
        )
        while time.monotonic() < until:
            time.sleep(_PAUSE)
            now = self._find_registered()
            if now is None or now.heartbeat_at != other.heartbeat_at:
                return now is not None
        return False

    def join(self) -> None:
        """Register, renew the lease for the first time, and follow a drain that was requested before the start."""
        self._warn_of_other_interfaces()
        self._warn_of_ambiguous_drivers()
        lease = self._services.lease
        moment = lease.now()
        self.register()
        self.find_others()
        lease.renew(moment)
        self._follow_drain()

    def register(self) -> None:
        """Write this conductor's entry, with what it has enabled."""
        hardware = self._services.hardware
        values = {
            "conductor_group": self._services.group,
            "process": identify_process(os.getpid()),
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
            if self._find_registered() is not None:
                LOG.critical("Another conductor has taken the name %s: this one stops", host)
                self.on_name_conflict()
                return
            LOG.warning("The entry of conductor %s is gone, as after a restored backup: it is made again", host)
            self.register()
        if seconds := lease.renew(moment):
            LOG.warning("No heartbeat for %.0f s; other conductors get time to write theirs", seconds)
            self._judges_from = moment + self._services.heartbeat_timeout
        self._follow_drain()

    def judge(self, hosts: set[str]) -> None:
        """Find out which of some conductors are dead: those without a recent heartbeat.

        After a time without database (or asleep) no heartbeat is recent, and all conductors get the time to write one.
        """
        self.find_others()
        online = self.others | {self._services.host}
        lease = self._services.lease
        now = lease.now()
        can_judge = now >= self._judges_from and lease.covers(now)
        self.dead_hosts = frozenset(hosts - online) if can_judge else frozenset()

    def wait_for_others(self, at_most: float | None = None) -> bool:
        """Wait while this conductor is the only one; return False when it stops."""
        self._others_or_end.wait(at_most)
        return not self._stopping

    @property
    def is_registered(self) -> bool:
        """Whether this conductor has an entry in the database."""
        return self._entry is not None

    def find_others(self) -> bool:
        """Find out which other conductors are online, and return whether one that was is not any more."""
        online = conductors.online_hosts(self._db, self._services.heartbeat_timeout)
        before, self.others = self.others, frozenset(online - {self._services.host})
        if not self.others:
            self._others_or_end.clear()
        if self.others or self._stopping:
            self._others_or_end.set()
        has_lost = bool(before - self.others)
        if has_lost:
            self._rings.forget()
        return has_lost

    def list_still_dead(self) -> frozenset[str]:
        """Return whose locks may be taken: a conductor that the last sweep found dead may have come back since."""
        return self.dead_hosts - conductors.online_hosts(self._db, self._services.heartbeat_timeout)

    def _follow_drain(self) -> None:
        """Leave the rings when an operator has drained this conductor, and come back when that is over.

        Meanwhile it is alive: it finishes what runs and answers requests.
        """
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
            self._others_or_end.set()
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

    def is_anothers(self, node: models.Node) -> bool:
        """Return whether a node of this conductor's group is another's.

        A wake-up may have been queued, or on its way, when the rings changed. They are read again before that is
        believed. While no conductor is known to be online, as after a time without database, the one woken up works.
        """
        own = (None, self._services.host)
        if self.owner(node) in own:
            return False
        self._rings.forget()
        return self.owner(node) not in own

    def owner(self, node: models.Node) -> str | None:
        """Return the host name of the conductor that owns a node; None if there is none."""
        try:
            return self._rings.owner(node.uuid, node.conductor_group, node.driver)
        except errors.NoConductor:
            return None

    def _warn_of_other_interfaces(self) -> None:
        """Warn when another conductor has other interfaces for a hardware type (specification 004).

        That is no error: it cannot be avoided while conductors are upgraded one by one.
        """
        host, enabled = self._services.host, self._services.hardware.list_enabled()
        types = sorted({one.hardware_type for one in enabled})
        online = conductors.enabled_interfaces(self._db, self._services.heartbeat_timeout, types)
        entries: list[tuple[str, conductors.EnabledInterface | conductors.InterfaceOnline]] = [
            *((host, one) for one in enabled),
            *((one.hostname, one) for one in online if one.hostname != host),
        ]
        found: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
        for hostname, one in entries:
            pair = f"{one.interface_type} {one.interface_name}"
            found[hostname, one.hardware_type] |= {pair, f"{pair} as default"} if one.default else {pair}
        for (hostname, hardware_type), interfaces in found.items():
            if different := interfaces ^ found[host, hardware_type]:
                LOG.warning(
                    "Conductor %s has other interfaces enabled for %s: %s. Nodes may work on one and not on the other.",
                    hostname,
                    hardware_type,
                    ", ".join(sorted(different)),
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
