"""In-band steps: what the agent's hardware managers offer for cleaning, deploying and servicing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ingot.rack import erasing, raid, standby
from ingot.rack.commands import VERSION_MISMATCH, CommandError, CommandSpec
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
_IMAGE_ARGUMENTS = {
    "image_info": {"description": "The image: urls, checksum, format.", "required": True},
    "configdrive": {"description": "The config drive, gzip in base64 or a URL.", "required": False},
}


@dataclass(frozen=True)
class StepCall:
    """What a step is run with."""

    node: dict[str, Any]
    args: dict[str, Any]


Run = Callable[["Agent", StepCall], Awaitable[Any]]


@dataclass(frozen=True)
class Step:
    """A step; ``priorities`` holds one for each kind of work that it is offered for."""

    step: str
    interface: str
    run: Run
    priorities: dict[str, int]
    abortable: bool = False
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
        }
        return shown | ({"argsinfo": self.argsinfo} if self.argsinfo else {})


async def _erase_devices(agent: "Agent", call: StepCall) -> None:
    await erasing.erase_completely(agent, call.node)


async def _erase_devices_metadata(agent: "Agent", call: StepCall) -> None:
    await erasing.erase_metadata(agent)


async def _erase_devices_express(agent: "Agent", call: StepCall) -> None:
    await erasing.erase_quickly(agent, call.node)


async def _nothing_to_do(agent: "Agent", call: StepCall) -> None:
    """Steps for parts that a simulated machine does not have (NVRAM entries, pstore); they are recorded."""


async def _create_raid(agent: "Agent", call: StepCall) -> dict[str, Any]:
    wanted = call.node.get("target_raid_config")
    if not wanted:
        raise CommandError("SoftwareRAIDError", "there is no RAID configuration: set the node's target_raid_config")
    return await _build_raid(agent, wanted, delete_existing=True)


async def _apply_raid(agent: "Agent", call: StepCall) -> dict[str, Any]:
    wanted = call.args.get("raid_config")
    if not isinstance(wanted, dict):
        raise CommandError("SoftwareRAIDError", f"argument raid_config must be an object, got {wanted!r}")
    return await _build_raid(agent, wanted, bool(call.args.get("delete_existing", True)))


async def _build_raid(agent: "Agent", wanted: dict[str, Any], delete_existing: bool) -> dict[str, Any]:
    disks = agent.machine.disks
    try:
        built = await in_thread(agent.machine.site.heavy, raid.create, disks, wanted, delete_existing)
    except raid.RaidError as error:
        raise CommandError("SoftwareRAIDError", str(error)) from error
    return {"logical_disks": built}


async def _delete_raid(agent: "Agent", call: StepCall) -> None:
    await in_thread(agent.machine.site.heavy, raid.delete, agent.machine.disks)


async def _write_image(agent: "Agent", call: StepCall) -> str:
    return await standby.write(agent, call.args, call.node or agent.node)


STEPS = (
    Step("erase_devices", "deploy", _erase_devices, {"clean": 10}, abortable=True),
    Step("erase_devices_metadata", "deploy", _erase_devices_metadata,
         {"clean": 99, "deploy": 0, "service": 0}, abortable=True),
    Step("erase_devices_express", "deploy", _erase_devices_express, {"clean": 0}, abortable=True),
    Step("erase_pstore", "deploy", _nothing_to_do, {"clean": 0}, abortable=True),
    Step("clean_uefi_nvram", "deploy", _nothing_to_do,
         {"clean": 0, "deploy": 0, "service": 0}, abortable=True),
    Step("burnin_cpu", "deploy", _nothing_to_do, {"clean": 0, "service": 0}, abortable=True),
    Step("burnin_memory", "deploy", _nothing_to_do, {"clean": 0, "service": 0}, abortable=True),
    Step("create_configuration", "raid", _create_raid, {"clean": 0, "service": 0}, abortable=True),
    Step("delete_configuration", "raid", _delete_raid, {"clean": 0, "service": 0}, abortable=True),
    Step("apply_configuration", "raid", _apply_raid, {"clean": 0, "deploy": 0, "service": 0},
         argsinfo=_RAID_ARGUMENTS),
    Step("write_image", "deploy", _write_image, {"deploy": 0}, argsinfo=_IMAGE_ARGUMENTS),
)  # fmt: skip


async def _run_configured(config: StepConfig, agent: "Agent", call: StepCall) -> None:
    await asyncio.sleep(config.duration)
    if config.fail is not None:
        raise CommandError("CommandExecutionError", config.fail)


def configured(config: StepConfig) -> Step:
    """Return the step that a rack's settings describe."""
    return Step(
        step=config.step,
        interface=config.interface,
        run=partial(_run_configured, config),
        priorities=dict.fromkeys(config.kinds, config.priority),
        abortable=config.abortable,
        reboot_requested=config.reboot_requested,
        argsinfo=config.argsinfo,
        manager=EXTRA,
    )


def offered(agent: "Agent", kind: str) -> list[Step]:
    """Return the steps that an agent has for ``clean``, ``deploy`` or ``service``.

    Those of the rack's settings come first: of two hardware managers with one step the first is asked to run it.
    """
    extra = [configured(step) for step in agent.machine.site.config.steps]
    return [step for step in (*extra, *STEPS) if kind in step.priorities]


def versions(agent: "Agent") -> dict[str, str]:
    """Return the hardware managers' versions.

    An agent of another release than the rack's usual one has another hardware manager, too: its version is
    the agent's, so that steps planned with the old one are refused.
    """
    usual = agent.version == agent.machine.site.config.agent_version
    ordered = agent.machine.faults.value("hardware_manager_version")
    found = {"generic_hardware_manager": ordered or (_GENERIC_VERSION if usual else agent.version)}
    return found | ({"rack_hardware_manager": _EXTRA_VERSION} if agent.machine.site.config.steps else {})


async def _get_steps(kind: str, agent: "Agent", params: dict[str, Any]) -> dict[str, Any]:
    by_manager: dict[str, list[dict[str, Any]]] = {}
    for step in offered(agent, kind):
        by_manager.setdefault(step.manager, []).append(step.public(kind))
    if agent.machine.faults.strike("malformed_steps"):
        by_manager[GENERIC][0]["priority"] = "high"
    return {f"{kind}_steps": by_manager, "hardware_manager_version": versions(agent)}


async def _execute_step(kind: str, agent: "Agent", params: dict[str, Any]) -> dict[str, Any]:
    planned = params.get(f"{kind}_version")
    if planned and planned != versions(agent):
        raise CommandError(
            "VersionMismatch",
            f"Hardware manager versions differ: the agent has {versions(agent)}, the steps are for {planned}",
            status=VERSION_MISMATCH,
        )
    wanted = params.get("step")
    if not isinstance(wanted, dict) or "step" not in wanted:
        raise CommandError("InvalidCommandParamsError", f"step must be an object with a name, got {wanted!r}")
    step = _find(agent, kind, wanted)
    call = StepCall(node=params.get("node") or {}, args=wanted.get("args") or {})
    _check_arguments(step, call.args)
    return {f"{kind}_result": await step.run(agent, call), f"{kind}_step": wanted}


def _find(agent: "Agent", kind: str, wanted: dict[str, Any]) -> Step:
    for step in offered(agent, kind):
        if step.step == wanted["step"] and wanted.get("interface", step.interface) == step.interface:
            return step
    name = f"{wanted.get('interface')}.{wanted['step']}"
    raise CommandError("CommandExecutionError", f"no hardware manager has the {kind} step {name}")


def _check_arguments(step: Step, args: dict[str, Any]) -> None:
    known = step.argsinfo or {}
    missing = [name for name, info in known.items() if info.get("required") and name not in args]
    if missing:
        raise CommandError("InvalidCommandParamsError", f"step {step.step}: argument {', '.join(missing)} is missing")
    unknown = [name for name in args if name not in known]
    if unknown:
        raise CommandError("InvalidCommandParamsError", f"step {step.step}: it takes no argument {', '.join(unknown)}")


COMMANDS = {
    f"{kind}.{verb}": spec
    for kind in STEP_KINDS
    for verb, spec in {
        f"get_{kind}_steps": CommandSpec(partial(_get_steps, kind), asynchronous=False),
        f"execute_{kind}_step": CommandSpec(partial(_execute_step, kind)),
    }.items()
}
