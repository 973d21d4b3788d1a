"""Conductors on scripted hardware that a test drives by hand, with turns instead of time: conductor and machine act one
after the other, and hours pass by moving the node's moments back.
"""

import contextlib
import datetime
import uuid
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, context, interfaces
from ingot.conductor import manager
from ingot.db import conductors, models, node_lists, nodes
from ingot.db.engine import Database
from ingot.rpcapi import versions
from tests import conductor_case, database, scripted_agent
from tests.scripted_hardware import Killed, Life, MortalDatabase, Stage, hardware


class ScriptedCase(conductor_case.ConductorCase):
    """``self.conductor`` is the one that works now; ``self.stage`` has the script.

    The conductors have no timers: they reconcile when a test notifies them or lets them sweep.

    :cvar tls: whether agents serve HTTPS.
    """

    starts = False
    tls = True

    def setUp(self) -> None:
        self.stage = Stage()
        self._number = 0
        super().setUp()
        self.addCleanup(self.retire)
        self.server = scripted_agent.Server(self.tls)
        self.addCleanup(self.server.stop)

    def configure(self) -> None:
        self.conf.set_override("enabled_hardware_types", ["scripted"])
        for kind in interfaces.TYPES:
            self.conf.set_override(f"enabled_{kind}_interfaces", ["scripted"])
        self.conf.set_override("require_tls", self.tls, group="agent")

    def make_conductor(self, db: Database) -> manager.Conductor:
        """Start another conductor; those before it have written no heartbeat for an hour."""
        self._number += 1
        host = f"conductor-{self._number}"
        self.conf.set_override("host", host)
        table = models.table(models.Conductor)
        with db.single() as connection:
            connection.execute(sa.update(table).values(heartbeat_at=clock.now() - datetime.timedelta(hours=1)))
        self.stage.life = Life()
        loaded = hardware(self.conf, self.stage)
        conductor = manager.Conductor(self.conf, MortalDatabase(db, self.stage.life), loaded)
        about = {"conductor_group": "", "release": versions.current_version(), "rpc_version": versions.RPC_VERSION}
        lease = conductor.services.lease
        moment = lease.now()
        conductors.register(db, host, {**about, "classic_drivers": []}, loaded.list_enabled())
        lease.renew(moment)
        return conductor

    def retire(self) -> None:
        """Give back the threads of the conductor that works now, or is dead."""
        self.conductor.queues.stop(conductor_case.PATIENCE)

    def machine(self, **columns: Any) -> models.Node:
        """Return a node with a machine, and an agent for it."""
        image = {"image_source": "http://images/os.raw", "image_checksum": "ab" * 32}
        node = database.make_node(self.db, **{"driver": "scripted", "instance_info": image, **columns})
        self.server.add(
            node.uuid,
            offers=self.stage.offered,
            run_step=lambda agent, kind, step: self.stage.play_on_agent(agent, kind, step, node.uuid),
        )
        return node

    def agent(self, node: models.Node) -> scripted_agent.Agent:
        return self.server.agents[node.uuid]

    def now(self, node: models.Node) -> models.Node:
        return nodes.get(self.db, node.uuid)

    # Turns

    def notify_and_wait(self, node: models.Node) -> None:
        """Notify the conductor and wait until it has reconciled. If hardware needed time, it has passed."""
        if self.now(node).step_state == "polling":
            nodes.set_always(self.db, node.uuid, {"due_at": clock.now()})
        self.conductor.endpoint.advance(context.admin().to_dict(), node_uuid=node.uuid, why="test")
        self._answered(node)

    def sweep_for(self, node: models.Node) -> None:
        """Let the conductor sweep without a wake-up; it has processed what it found when this returns."""
        with contextlib.suppress(Killed):
            self.conductor.sweeper.sweep()
        for one in (node, *node_lists.list_children(self.db, node.uuid)):
            self._answered(one)

    def _answered(self, node: models.Node) -> None:
        self.conductor.queues.submit(node.uuid, lambda: None).result(conductor_case.PATIENCE)

    def machine_turn(self, node: models.Node) -> None:
        """Let the agent work or boot, and send a heartbeat, if the conductor waits for it."""
        now, agent = self.now(node), self.agent(node)
        if now.step_state not in ("waiting", "watching", "ending") or current(now) == self.stage.silent_in:
            return
        if now.agent_url is None:
            replaced = any(act.fault == "replaced" for act in self.stage.acts)
            agent.version = "14.0.0" if replaced and agent.posted else agent.version
            agent.boot(self.db, now)
            agent.token = "another token" if self.stage.distrusted else agent.token
            if now.flow == "inspect":
                agent.tell(self.db, now)
        else:
            agent.work()
        agent.beat(self.db, now)

    def take_turns(
        self,
        node: models.Node,
        sweeps: bool = False,
        until: Callable[[models.Node], bool] = lambda _now: False,
        most: int = 100,
    ) -> models.Node:
        """Take turns until the flow has ended, the conductor is dead, or three turns have changed nothing.

        :param sweeps: all wake-ups are lost.
        :param until: ends it earlier, before the machine's turn.
        """
        same, before = 0, None
        for _ in range(most):
            (self.sweep_for if sweeps else self.notify_and_wait)(node)
            for child in () if sweeps else node_lists.list_children(self.db, node.uuid):
                self.notify_and_wait(child)
            now = self.now(node)
            if (now.flow is None and now.reservation is None) or self.stage.life.dead or until(now):
                return now
            place = (now.provision_state, now.run_id, now.step_state, now.step_attempt, now.step_started_at)
            same, before = same + 1 if place == before else 0, place
            if same == 3:
                return now
            self.machine_turn(now)
        raise AssertionError(f"no end after {most} turns: {now.as_dict()}")

    def let_pass(self, node: models.Node, seconds: float) -> None:
        """Let time pass, as the node's row sees it."""
        now, ago = self.now(node), datetime.timedelta(seconds=seconds)
        of_agent = ("agent_last_heartbeat", "step_heard")
        names = ("provision_updated_at", "step_started_at", "step_deadline", "due_at", *of_agent)
        values: dict[str, Any] = {name: getattr(now, name) - ago for name in names if getattr(now, name)}
        memory = _earlier(now.step_memory, seconds)
        nodes.set_always(self.db, node.uuid, {**values, "step_memory": memory})

    def another_conductor(self) -> None:
        """Replace the dead conductor; the next one gets no message and finds out."""
        self.retire()
        self.conductor = self.make_conductor(self.db)

    def asked(self, node: models.Node, flow: str, state: str, **request: Any) -> None:
        """Write what the API writes when it accepts a verb; a new request is no longer aborted."""
        nodes.set_always(self.db, node.uuid, {"abort_requested": False})
        self.accept(node, flow, state, **request)

    def free(self, node: models.Node) -> None:
        """Assert that no work of the node is pending."""
        now = self.now(node)
        # After a failure the machine is switched off, by a request of its own.
        next_check = () if now.power_request else ("due_at",)
        kept = (*next_check, "flow", "run_id", "reservation", "lock_purpose", "step_state", "step_deadline")
        assert not any(getattr(now, name) for name in kept), {name: getattr(now, name) for name in kept}
        assert (now.step_memory, now.request, now.abort_requested) == ({}, {}, False)


def _earlier(memory: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return a step's memory with the moments of power changes in it moved back."""
    return {
        key: _earlier(value, seconds) if isinstance(value, dict) else value - seconds if key == "at" else value
        for key, value in memory.items()
    }


def current(now: models.Node) -> tuple[str, str]:
    """Return interface and name of the step that a node shows."""
    index = next((key for key in now.driver_internal_info if key.endswith("_step_index")), "")
    plan = now.driver_internal_info.get(f"{index.removesuffix('_step_index')}_steps") or [{}]
    step = plan[now.driver_internal_info.get(index, 0)] if now.flow else {}
    return step.get("interface", ""), step.get("step", "")


def some_run() -> str:
    """Return an id for the run of a flow that a parent's step requested."""
    return str(uuid.uuid4())
