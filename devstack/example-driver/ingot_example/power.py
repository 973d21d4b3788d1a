"""The power interface of machines behind smart plugs, with a step and a periodic method of its own."""

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, states
from ingot.common.json_types import Json
from ingot.drivers.interfaces import base
from ingot.drivers.interfaces.periodic import Fleet, periodic
from ingot.drivers.interfaces.power import PowerInterface
from ingot.drivers.interfaces.task import Task
from ingot_example import options, plug

LOG = log.getLogger(__name__)

_RELAY = {states.POWER_ON: True, states.POWER_OFF: False}

_TEXT: base.ArgsInfo = {
    "text": {"description": "What to show, at most 40 characters. Default: the node's name, or its uuid."}
}


class PlugPower(PowerInterface):
    """One object serves all nodes: nothing of a node is kept in it, everything comes with the task."""

    # The plug stays on when the operating system shuts the machine down, so Ingot must not wait for it to go off.
    sees_changes = False

    def __init__(self, conf: cfg.ConfigOpts, name: str) -> None:
        options.register(conf)  # before the base class, which reads the priorities of steps
        super().__init__(conf, name)

    def get_properties(self) -> dict[str, str]:
        return plug.PROPERTIES

    def validate(self, task: Task) -> None:
        self._plug(task)

    def get_supported_power_states(self, task: Task) -> list[str]:
        return [states.POWER_ON, states.POWER_OFF, states.REBOOT]

    def get_power_state(self, task: Task) -> str:
        return states.POWER_ON if self._read(task).get("on") else states.POWER_OFF

    def bmc(self, task: Task) -> str:
        """Return what is asked about the machine: Ingot leaves a plug alone for a while that does not answer."""
        return self._plug(task).url

    def start_power_change(self, task: Task, target: str) -> None:
        """Switch the plug; do not wait: Ingot reads the state until it is the one requested.

        Ingot makes a reboot of off and on. A soft power off, which flows try first, ends here; they go on with a hard
        one.
        """
        if target not in _RELAY:
            raise errors.StepFailed(f"a plug cannot do '{target}', only {' and '.join(_RELAY)}")
        self._write(task, on=_RELAY[target])

    # Out of band: the conductor calls the plug, and no agent has to run. A deployment does it by default, before the
    # machine boots; cleaning and service only on request.
    @base.service_step(argsinfo=_TEXT, requires_ramdisk=False)
    @base.clean_step(priority=0, argsinfo=_TEXT, requires_ramdisk=False)
    @base.deploy_step(priority=base.from_option("example", "show_name_priority"), argsinfo=_TEXT, idempotent=True)
    def show_name(self, task: Task, text: str | None = None) -> None:
        """Show on the plug's display whose machine hangs on it."""
        shown: object = task.node.name or task.node.uuid if text is None else text
        if not isinstance(shown, str) or len(shown) > 40:
            raise errors.Invalid(field="text", value=shown, allowed="A text of at most 40 characters.")
        self._write(task, display=shown)

    @periodic(spacing=base.from_option("example", "watch_interval"))
    def watch_load(self, fleet: Fleet) -> None:
        """Log which of this conductor's machines draw too much."""
        most = fleet.conf.example.most_watts
        for node in fleet.nodes():
            try:
                with fleet.acquire_shared(node) as task:
                    watts = self._read(task).get("watts", 0.0)
            except errors.IngotError as exc:
                LOG.warning("Node %s: the load of its plug is not known: %s", node.uuid, exc.message)
                continue
            if watts > most:
                LOG.warning("Node %s draws %.0f W; [example] most_watts is %.0f", node.uuid, watts, most)

    def _plug(self, task: Task) -> plug.Plug:
        return plug.read_plug(task.node.driver_info, task.conf.example.timeout)

    def _read(self, task: Task) -> Json:
        with task.circuit_breakers.observe_call(task.node.uuid, self.bmc(task), task.node.driver):
            return self._plug(task).read()

    def _write(self, task: Task, **values: object) -> None:
        with task.circuit_breakers.observe_call(task.node.uuid, self.bmc(task), task.node.driver):
            self._plug(task).write(**values)
