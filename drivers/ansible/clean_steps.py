"""The file that lists an operator's clean steps, and which tasks of a playbook each of them is."""

from pathlib import Path
from typing import TYPE_CHECKING

from ingot.common import errors, later
from ingot.common.steps import StepJson

if TYPE_CHECKING:
    import yaml
else:
    yaml = later.Module("yaml")  # one of the extra ansible

_KNOWN = {"name", "interface", "priority", "args"}


def read(path: Path) -> dict[str, tuple[StepJson, list[str]]]:
    """Return the steps of a file by their names, each with the tags of its tasks.

    :raises Invalid: the file cannot be read, or a step in it cannot be used; the message names it and what is wrong.
    """
    try:
        listed = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        raise _refuse(path, "the file", f"It cannot be read as YAML: {exc}") from exc
    if not isinstance(listed, list):
        raise _refuse(path, type(listed).__name__, "It must be a list of steps.")
    steps = [_read_step(path, number, one) for number, one in enumerate(listed)]
    return {step["step"]: (step, tags) for step, tags in steps}


def _refuse(path: Path, value: object, allowed: str) -> errors.Invalid:
    return errors.Invalid(field=f"ansible_clean_steps_config {path}", value=value, allowed=allowed)


def _read_step(path: Path, number: int, given: object) -> tuple[StepJson, list[str]]:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise _refuse(path, given, f"Step {number} must be an object with a name.")
    name, args, priority = given["name"], given.get("args") or {}, given.get("priority", 0)
    if unknown := sorted(map(str, given.keys() - _KNOWN)):
        raise _refuse(path, ", ".join(unknown), f"Step {name} may have {', '.join(sorted(_KNOWN))}.")
    if given.get("interface") != "deploy":
        raise _refuse(path, given.get("interface"), f"The interface of step {name} must be deploy.")
    if isinstance(priority, bool) or not isinstance(priority, int) or priority < 0:
        raise _refuse(path, priority, f"The priority of step {name} must be an integer of at least 0.")
    tags = (args.get("tags") or {}).get("value") if isinstance(args, dict) else None
    if not isinstance(tags, list) or not tags or not all(isinstance(tag, str) for tag in tags):
        raise _refuse(path, tags, f"args.tags.value of step {name} must be a list of tags.")
    step: StepJson = {
        "interface": "deploy",
        "step": name,
        "priority": priority,
        "priority_of_agent": False,
        "abortable": False,
        "argsinfo": None,
        "requires_ramdisk": True,
        "idempotent": True,
    }
    return step, tags
