"""Runs the operator's inspection rules: the actions of each whose conditions are all met, one rule after the other."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oslo_log import log

from ingot.common import errors, masking
from ingot.common.json_types import Json
from ingot.conductor.inspection import variables
from ingot.conductor.inspection.actions import ACTIONS
from ingot.conductor.inspection.conditions import COMBINED, TESTS
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.variables import Known
from ingot.db import inventory, models

LOG = log.getLogger(__name__)

PHASE = "main"

Use = Mapping[str, Any]
"""A condition or action of a rule: ``op``, ``args``, and ``loop`` and ``multiple`` where they are given."""


def run(draft: Draft) -> None:
    """Apply all rules, highest priority first, older ones first among equals.

    :raises StepFailed: an action failed, or a rule cannot be understood; the message names rule and place.
    """
    for rule in inventory.list_rules(draft.task.db, PHASE):
        if all(_part(rule, "condition", place, _is_met, draft) for place in enumerate(rule.conditions)):
            LOG.debug("Node %s: inspection rule %s applies", draft.node["uuid"], rule.uuid)
            for place in enumerate(rule.actions):
                _part(rule, "action", place, _act, draft)


def _part(
    rule: models.InspectionRule,
    part: str,
    place: tuple[int, Use],
    work: Callable[[Draft, Use], bool],
    draft: Draft,
) -> bool:
    """Do one part of a rule; an error names its place, but nothing of what a sensitive rule works with."""
    number, use = place
    try:
        return work(draft, use)
    except Exception as exc:  # noqa: BLE001 - what operators and inventories may have in them is not known here
        reason = exc.message if isinstance(exc, errors.IngotError) else f"{type(exc).__name__}: {exc}"
        name = f"{rule.description!r} ({rule.uuid})" if rule.description else rule.uuid
        text = "the rule is sensitive, so its error is not shown" if rule.sensitive else reason
        where = f"inspection rule {name}, {part} {number + 1} ({use['op']})"
        raise errors.StepFailed(f"{where}: {text}") from (None if rule.sensitive else exc)


def _is_met(draft: Draft, use: Use) -> bool:
    name: str = use["op"]
    test = TESTS[name.removeprefix("!")]
    outcomes = [test(**args) != name.startswith("!") for args in _fill_arguments(test, draft, use, lenient=True)]
    return COMBINED[use.get("multiple") or "any"](outcomes) if "loop" in use else outcomes[0]


def _act(draft: Draft, use: Use) -> bool:
    action = functools.partial(ACTIONS[use["op"]], draft)
    for args in _fill_arguments(action, draft, use):
        action(**args)
    return True


def _fill_arguments(function: Callable[..., object], draft: Draft, use: Use, lenient: bool = False) -> Iterator[Json]:
    """Yield the arguments by name, for each turn of the loop.

    :param lenient: whether an argument with a variable that is not there is None; otherwise that is an error.
    """
    # A rule may log or send what it sees: passwords of BMCs are not for that.
    known = {"node": masking.mask(draft.node), "inventory": draft.inventory, "plugin_data": draft.plugin_data}
    named = _name_arguments(function, use["args"])
    for item in _list_turns(use, known):
        variants = {**known, **item}
        yield {name: _fill_value(value, variants, lenient) for name, value in named.items()}


def _fill_value(value: object, known: Known, lenient: bool) -> object:
    if isinstance(value, list):
        return [_fill_value(one, known, lenient) for one in value]
    try:
        return variables.fill(value, known)
    except variables.Unknown:
        if not lenient:
            raise
        return None


def _list_turns(use: Use, known: Known) -> list[Json]:
    """Return what else is known in each turn of the loop; without one there is one turn. The turns of an object are
    those of its keys and values."""
    if "loop" not in use:
        return [{}]
    loop = variables.fill(use["loop"], known)
    items = [{"key": key, "value": value} for key, value in loop.items()] if isinstance(loop, dict) else loop
    return [{"item": item} for item in items]


def _name_arguments(function: Callable[..., object], args: Any) -> Json:
    """Return arguments by name, however they are given.

    :raises Invalid: there is none of that name, or there are too many.
    """
    names = list(inspect.signature(function).parameters)
    if isinstance(args, Mapping):
        unknown = sorted(set(args) - set(names))
        if unknown:
            raise errors.Invalid(field="args", value=unknown, allowed=f"They are called: {', '.join(names)}.")
        return dict(args)
    if names[0] == "values" and not (args and isinstance(args[0], list)):
        return {"values": args}
    if len(args) > len(names):
        raise errors.Invalid(field="args", value=args, allowed=f"{len(names)} at most: {', '.join(names)}.")
    return dict(zip(names, args, strict=False))
