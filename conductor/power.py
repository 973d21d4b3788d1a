"""Power states: changes that users ask for, and the reading of all of them, which finds machines that were switched on
or off outside of Ingot, and unresponsive BMCs."""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures

import futurist
from oslo_log import log

from ingot.common import clock, context, errors, states
from ingot.conductor.task.task_manager import Services, Task, make_storable
from ingot.db import maintenance, models, node_lists, nodes
from ingot.drivers.agent import session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.power import Reading
from ingot.notifications import notifier

LOG = log.getLogger(__name__)

_BATCH = 200
"""Nodes that are read from the database in one statement."""

AT_ONCE = 256
"""Machines that are read at a time at most."""


def advance(task: Task) -> float | None:
    """Do what can be done now for a power change, and release the lock.

    A flow that is under way waits meanwhile; its turn comes when the change has ended.

    :returns: seconds after which the node must be reconciled again; None when there is nothing more to do.
    """
    request = task.node.power_request
    task.memory = dict(request.get("memory", {}))
    try:
        task.confirm_chance()
        if task.driver.power is None:
            raise errors.Invalid(task.missing["power"])
        answer = power_control.change(task, request["target"])
    except (errors.LockLost, errors.ServiceUnavailable):
        raise  # not the machine's fault; the request stands
    except errors.IngotError as exc:
        return _end_change(task, request["target"], exc.message)
    except BaseException as exc:  # the edge of a worker; a driver's sys.exit too must not leave the request behind
        LOG.exception("Node %s: unexpected error in the power change", task.node.uuid)
        task.discard()  # it may be what could not be written
        return _end_change(task, request["target"], errors.unexpected_error(exc).message)
    if isinstance(answer, results.PollAfter):
        task.set(
            power_request={**request, "memory": task.memory, "until": answer.until}, due_at=clock.after(answer.after)
        )
        task.release()
        return answer.after
    return _end_change(task, request["target"])


def _end_change(task: Task, target: str, reason: str | None = None) -> float | None:
    """
    :param reason: why it has failed; None: it is done.
    :returns: as :func:`advance`.
    """
    error, has_flow = None, task.node.flow is not None
    if reason is not None:
        error = make_storable(f"Power change to '{target}' failed on conductor {task.services.host}: {reason}")
        LOG.error("Node %s: %s", task.node.uuid, error)
    due_at = clock.now() if has_flow else None
    before = task.node.last_error if task.node.power_request.get("keeps_error") else None
    shown = make_storable(" ".join(filter(None, (before, error)))) or None
    task.set(power_request={}, target_power_state=None, due_at=due_at, last_error=shown)
    if error is None and not has_flow and target != states.POWER_ON:
        session.forget(task)  # of the agent that ran until now; should it be booted again, it gets a new token
    task.release(history=[task.build_history_entry("power", "ERROR", error)] if error else [])
    return 0.0 if has_flow else None


class PowerSynchronizer:
    """Reads the power states of nodes, with threads of its own: machines that do not answer cannot take workers away
    from those that do.

    It never locks a node, and leaves alone what changed since the node was read, so that no other work waits for it.
    Unresponsive BMCs are asked last, and less and less often.

    :param owns: whether a node is this conductor's.
    :ivar running: UUIDs of the nodes that are being read.
    :ivar failures: how many readings in a row have failed, by the node's UUID.
    :ivar owned: how many nodes of this conductor's there were to read in the last round.
    """

    def __init__(self, services: Services, owns: Callable[[models.Node], bool]) -> None:
        self.running: set[str] = set()
        self.failures: dict[str, int] = {}
        self.owned = 0
        self._services = services
        self._owns = owns
        self._executor = futurist.ThreadPoolExecutor(max_workers=services.conf.conductor.sync_power_state_workers)
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._stopped = threading.Event()

    def sync_power(self) -> None:
        """Read the power states of this conductor's machines."""
        services = self._services
        candidates = node_lists.list_for_power_sync(services.db, services.group, services.hardware.drivers)
        own = [node.uuid for node in candidates if self._owns(node)]
        self.owned = len(own)
        self.read(own)
        # By what exists and is owned: a candidate of one round may be locked in the next, and goes on failing.
        if failing := frozenset(self.failures):
            known = node_lists.list_ring_keys(services.db, failing)
            for uuid in failing - {node.uuid for node in known if self._owns(node)}:
                self.failures.pop(uuid, None)

    def read(self, uuids: Iterable[str]) -> None:
        """Begin to read nodes; those still being read from the last round are not asked twice.

        Returns when the last of them has begun.
        """
        fresh = [uuid for uuid in uuids if uuid not in self.running]
        fresh.sort(key=self._services.circuit_breakers.is_unresponsive)
        for node in self._read_unlocked(fresh):
            if self._stopped.is_set():
                return
            try:
                self._begin(Task(self._services, context.admin(), node))
            except errors.IngotError as exc:
                LOG.warning("Power state of node %s not read: %s", node.uuid, exc.message)
            except Exception:  # the edge of a timer, and perhaps code of a plug-in's
                LOG.exception("Reading the power state of node %s failed unexpectedly", node.uuid)

    def stop(self) -> None:
        self._stopped.set()
        self._executor.shutdown(wait=False)

    def _read_unlocked(self, uuids: Iterable[str]) -> Iterator[models.Node]:
        """Read the nodes without a lock from the database, some at a time."""
        waiting = iter(uuids)
        while batch := list(itertools.islice(waiting, _BATCH)):
            found = {node.uuid: node for node in node_lists.list_unlocked(self._services.db, batch)}
            yield from (found[uuid] for uuid in batch if uuid in found)

    def _begin(self, task: Task) -> None:
        power, circuit_breakers = task.driver.power, self._services.circuit_breakers
        if power is None or not power.switches or not circuit_breakers.can_call(power.bmc(task)):
            return
        self._places.acquire()
        self.running.add(task.node.uuid)
        try:
            reading = power.start_reading(task)
            if reading is None:
                self._executor.submit(self._end, task, lambda: Reading(power.get_power_state(task)))
            else:
                reading.add_done_callback(lambda ended: self._hand_over(task, ended))
        except BaseException:
            self._leave(task)
            raise

    def _hand_over(self, task: Task, ended: "futures.Future[Reading]") -> None:
        """Go on in a thread of the pool.

        The thread that read the machine has others to read, and what follows may wait for the database.
        """
        try:
            self._executor.submit(self._end, task, ended.result)
        except RuntimeError:  # the pool was shut down: the conductor stops
            self._leave(task)

    def _leave(self, task: Task) -> None:
        self.running.discard(task.node.uuid)
        self._places.release()

    def _end(self, task: Task, result: Callable[[], Reading]) -> None:
        node = task.node
        try:
            bmc = task.driver.power.bmc(task)
            with self._services.circuit_breakers.observe_call(node.uuid, bmc, node.driver):
                reading = result()
            self._note(task, reading)
        except errors.HardwareError as exc:
            self._note_failure(task, exc)
        except errors.IngotError as exc:
            LOG.warning("Power state of node %s not read: %s", node.uuid, exc.message)
        except Exception:  # the edge of a worker: the next round tries again
            LOG.exception("Reading the power state of node %s failed unexpectedly", node.uuid)
        finally:
            self._leave(task)

    def _note(self, task: Task, reading: Reading) -> None:
        node = task.node
        self.failures.pop(node.uuid, None)
        changes: dict[str, object] = {}
        messages: list[tuple[str, str]] = []
        if reading.power_state != node.power_state:
            changes["power_state"] = reading.power_state
            restores = self._services.conf.conductor.force_power_state_during_sync
            if restores and node.power_state in (states.POWER_ON, states.POWER_OFF):
                target = node.power_state
                changes = {"target_power_state": target, "power_request": {"target": target}, "due_at": clock.now()}
            messages.append(("INFO", f"The machine was found in '{reading.power_state}', it was '{node.power_state}'"))
        if reading.health not in (None, node.health):
            changes["health"] = reading.health
            severity = "INFO" if reading.health == "OK" else "ERROR"
            findings = f": {', '.join(reading.findings)}" if reading.findings else ""
            messages.append((severity, f"The BMC reports the machine's health: {reading.health}{findings}"))
        if reading.boot_mode not in (None, node.boot_mode):
            changes["boot_mode"] = reading.boot_mode
            messages.append(("INFO", f"The machine boots by '{reading.boot_mode}', it was '{node.boot_mode}'"))
        if maintenance.has_fault(node, maintenance.POWER_FAULT):
            changes |= maintenance.end_holds(node, lambda hold: hold["fault"] == maintenance.POWER_FAULT)
            messages.append(("INFO", "The BMC answers again, its maintenance for that ends"))
        self._write(task, changes, messages)

    def _note_failure(self, task: Task, exc: errors.HardwareError) -> None:
        node = task.node
        count = self.failures[node.uuid] = self.failures.get(node.uuid, 0) + 1
        LOG.warning("Power state of node %s not read, time %d in a row: %s", node.uuid, count, exc.message)
        tolerated = self._services.conf.conductor.power_state_sync_max_retries
        if count <= tolerated or maintenance.has_fault(node, maintenance.POWER_FAULT):
            return
        reason = make_storable(f"The power state could not be read {count} times in a row; last: {exc.message}")
        hold = maintenance.fault_hold(maintenance.POWER_FAULT, reason, self._services.host)
        fault = {**maintenance.add_hold(node, hold), "last_error": reason, "health": None}
        self._write(task, fault, [("ERROR", reason)])

    def _write(self, task: Task, changes: Mapping[str, object], messages: list[tuple[str, str]]) -> None:
        """Write what was found, unless the node was locked, or changed by a request, since it was read."""
        node = task.node
        if not changes:
            return
        for severity, message in messages:
            LOG.log(log.INFO if severity == "INFO" else log.WARNING, "Node %s: %s", node.uuid, message)
        entries = [task.build_history_entry("power", severity, message) for severity, message in messages]
        try:
            nodes.compare_and_set(self._services.db, node, changes, entries)
            if "power_state" in changes:
                self._tell_correction(task, changes)
                self._services.nova.tell(node.instance_uuid, str(changes["power_state"]), task.context.global_id)
        except (errors.NodeLocked, errors.ChangedMeanwhile, errors.NotFound) as exc:
            LOG.info("The next round reads node %s again: %s", node.uuid, exc.message)

    def _tell_correction(self, task: Task, changes: Mapping[str, object]) -> None:
        notices, node = self._services.notifier, task.node
        if notices.is_on:
            notices.tell(
                task.context, "node", notifier.find_correction(node.power_state), {**task.describe(), **changes}
            )
