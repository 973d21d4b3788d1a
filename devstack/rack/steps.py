"""In-band steps: what the agent's hardware managers offer for cleaning, deploying and servicing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ingot.rack import erasing, raid, standby
from ingot.rack.command_errors import STEP_ERRORS, CommandError
from ingot.rack.commands import CommandSpec
from ingot.rack.config import STEP_KINDS, StepConfig
from ingot.rack.loop import in_thread

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

GENERIC = "GenericHardwareManager"
EXTRA = "RackHardwareManager"
_GENERIC_VERSION = "1.2"
_EXTRA_VERSION = "1.0"

_RAID_ARGUMENTS = {
    "raid_config": {"description": "The RAID configuration to apply.", "required": True},
    "delete_existing": {"description": "Delete what exists first (default: true).", "required": False},
}
_NVRAM_ARGUMENTS = {
    "match_patterns": {"description": "Regular expressions of the entries to delete.", "required": False}
}
_FILES_ARGUMENTS = {
    "files": {"description": "The files: path, partition, content in base64, mode, dirmode.", "required": False},
    "verify_ca": {"description": "Verify TLS certificates (default: true).", "required": False},
}

Run = Callable[..., Awaitable[Any]]


@dataclass(frozen=True)
class Step:
    """A step.

    :param run: is called with the agent, the node and, by their names, with the step's arguments.
    :param priorities: one for each kind of work that the step is offered for.
    :param abortable: None: nothing is said about that.
    """

    step: str
    interface: str
    run: Run
    priorities: dict[str, int]
    abortable: bool | None = None
    reboot_requested: bool = False
    argsinfo: Any = None
    manager: str = field(default=GENERIC)

    def public(self, kind: str) -> dict[str, Any]:
        shown = {
            "step": self.step,
            "priority": self.priorities[kind],
            "interface": self.interface,
            "reboot_requested": self.reboot_requested,
            "abortable": self.abortable,
            "argsinfo": self.argsinfo or None,
        }
        return {key: value for key, value in shown.items() if value is not None}


async def _erase_devices(agent: "Agent", node: dict[str, Any]) -> None:
    await erasing.erase_completely(agent, node)


async def _erase_devices_metadata(agent: "Agent", node: dict[str, Any]) -> None:
    await erasing.erase_metadata(agent)


async def _erase_devices_express(agent: "Agent", node: dict[str, Any]) -> None:
    await erasing.erase_quickly(agent, node)


async def _nothing_to_do(agent: "Agent", node: dict[str, Any], match_patterns: Any = None) -> None:
    """Succeed: a simulated machine does not have these parts (NVRAM entries, pstore); the step is recorded."""


async def _not_simulated(agent: "Agent", node: dict[str, Any], **args: Any) -> None:
    raise CommandError("DeploymentError", "a simulated machine writes images and does nothing else to file systems")


async def _create_raid(agent: "Agent", node: dict[str, Any]) -> dict[str, Any]:
    target = node.get("target_raid_config")
    return await _build_raid(agent, target, delete_existing=False) if target else {}


async def _apply_raid(
    agent: "Agent", node: dict[str, Any], raid_config: dict[str, Any], delete_existing: bool = True
) -> dict[str, Any]:
    return await _build_raid(agent, raid_config, delete_existing)


async def _build_raid(agent: "Agent", target: dict[str, Any], delete_existing: bool) -> dict[str, Any]:
    disks = agent.machine.disks
    try:
        built = await in_thread(agent.machine.site.heavy, raid.create, disks, target, delete_existing)
    except raid.RaidError as error:
        raise CommandError("SoftwareRAIDError", str(error)) from error
    return {"logical_disks": built}


async def _delete_raid(agent: "Agent", node: dict[str, Any]) -> None:
    await in_thread(agent.machine.site.heavy, raid.delete, agent.machine.disks)


async def _write_image(
    agent: "Agent", node: dict[str, Any], image_info: dict[str, Any], configdrive: str | None = None
) -> dict[str, str]:
    return {"result": f"prepare_image: {await standby.prepare_image(agent, image_info, configdrive)}"}


STEPS = (
    Step("erase_devices", "deploy", _erase_devices, {"clean": 10}, abortable=True),
    Step("erase_devices_metadata", "deploy", _erase_devices_metadata, {"clean": 99}, abortable=True),
    Step("erase_devices_metadata", "deploy", _erase_devices_metadata, {"deploy": 0}),
    Step("erase_devices_express", "deploy", _erase_devices_express, {"clean": 0}, abortable=True),
    Step("erase_pstore", "deploy", _nothing_to_do, {"clean": 0}, abortable=True),
    Step("clean_uefi_nvram", "deploy", _nothing_to_do, {"clean": 0}, abortable=True, argsinfo=_NVRAM_ARGUMENTS),
    Step("clean_uefi_nvram", "deploy", _nothing_to_do, {"deploy": 0}, argsinfo=_NVRAM_ARGUMENTS),
    Step("burnin_cpu", "deploy", _nothing_to_do, {"clean": 0, "service": 0}, abortable=True),
    Step("burnin_gpu", "deploy", _nothing_to_do, {"clean": 0, "service": 0}, abortable=True),
    Step("burnin_disk", "deploy", _nothing_to_do, {"clean": 0}, abortable=True),
    Step("burnin_memory", "deploy", _nothing_to_do, {"clean": 0, "service": 0}, abortable=True),
    Step("burnin_network", "deploy", _nothing_to_do, {"clean": 0, "service": 0}, abortable=True),
    Step("create_configuration", "raid", _create_raid, {"clean": 0, "service": 0}, abortable=True),
    Step("delete_configuration", "raid", _delete_raid, {"clean": 0, "service": 0}, abortable=True),
    Step("apply_configuration", "raid", _apply_raid, {"deploy": 0, "service": 0}, argsinfo=_RAID_ARGUMENTS),
    Step("write_image", "deploy", _write_image, {"deploy": 0, "service": 0}),
    Step("inject_files", "deploy", _not_simulated, {"deploy": 0, "service": 0}, argsinfo=_FILES_ARGUMENTS),
    Step("execute_bootc_install", "deploy", _not_simulated, {"deploy": 0, "service": 0}),
)


async def _run_for_duration(config: StepConfig, agent: "Agent", node: dict[str, Any], **args: Any) -> Any:
    known = config.argsinfo or {}
    missing = [name for name, info in known.items() if info.get("required") and name not in args]
    unknown = [name for name in args if name not in known]
    if missing or unknown:
        raise TypeError(f"{config.step}() lacks {missing}, does not take {unknown}")
    await asyncio.sleep(config.duration)
    if config.fail is not None:
        raise CommandError("CommandExecutionError", config.fail)
    return config.result


def build_step(config: StepConfig) -> Step:
    """Return the step that a rack's settings describe."""
    return Step(
        step=config.step,
        interface=config.interface,
        run=partial(_run_for_duration, config),
        priorities=dict.fromkeys(config.kinds, config.priority),
        abortable=config.abortable,
        reboot_requested=config.reboot_requested,
        argsinfo=config.argsinfo,
        manager=EXTRA,
    )


def offer_steps(agent: "Agent", kind: str) -> list[Step]:
    """Return the steps that an agent has for ``clean``, ``deploy`` or ``service``.

    Those of the rack's settings come first: of two hardware managers with one step the first is asked to run it.
    """
    extra = [build_step(step) for step in agent.machine.site.config.steps]
    return [step for step in (*extra, *STEPS) if kind in step.priorities]


def versions(agent: "Agent") -> dict[str, str]:
    """Return the hardware managers' versions.

    An agent of another release than the rack's usual one has another hardware manager, too. Its version is the
    agent's, so that steps planned with the old one are refused.
    """
    usual = agent.version == agent.machine.site.config.agent_version
    ordered = agent.machine.faults.value("hardware_manager_version")
    found = {"generic_hardware_manager": ordered or (_GENERIC_VERSION if usual else agent.version)}
    return found | ({"rack_hardware_manager": _EXTRA_VERSION} if agent.machine.site.config.steps else {})


async def _get_steps(kind: str, agent: "Agent", node: dict[str, Any], ports: list[dict[str, Any]]) -> dict[str, Any]:
    agent.node = node or agent.node
    by_manager: dict[str, list[dict[str, Any]]] = {}
    for step in offer_steps(agent, kind):
        by_manager.setdefault(step.manager, []).append(step.public(kind))
    if agent.machine.faults.strike("malformed_steps"):
        by_manager[GENERIC][0]["priority"] = "high"
    return {f"{kind}_steps": by_manager, "hardware_manager_version": versions(agent)}


async def _execute_step(
    kind: str,
    agent: "Agent",
    step: dict[str, Any],
    node: dict[str, Any],
    ports: list[dict[str, Any]],
    **planned: dict[str, str] | None,
) -> dict[str, Any]:
    """Execute a step of an agent.

    :param planned: versions of hardware managers, as ``<kind>_version``.
    """
    agent.node = node or agent.node
    expected, found = planned.get(f"{kind}_version"), versions(agent)
    if expected and expected != found:
        raise CommandError("VersionMismatch", f"the agent has {found}, the steps are for {expected}")
    run = _find(agent, kind, step).run
    try:
        result = await run(agent, node, **(step.get("args") or {}))
    except TypeError as error:
        raise CommandError(STEP_ERRORS[kind], f"{step['step']}: {error}") from error
    return {f"{kind}_result": result, f"{kind}_step": step}


def _find(agent: "Agent", kind: str, requested: dict[str, Any]) -> Step:
    for step in offer_steps(agent, kind):
        if step.step == requested["step"] and requested.get("interface", step.interface) == step.interface:
            return step
    name = f"{requested.get('interface')}.{requested['step']}"
    raise CommandError("HardwareManagerMethodNotFound", f"no hardware manager has the {kind} step {name}")


COMMANDS = {
    f"{kind}.{verb}": spec
    for kind in STEP_KINDS
    for verb, spec in {
        f"get_{kind}_steps": CommandSpec(partial(_get_steps, kind), asynchronous=False),
        f"execute_{kind}_step": CommandSpec(partial(_execute_step, kind)),
    }.items()
}
