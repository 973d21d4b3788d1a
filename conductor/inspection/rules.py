"""Runs the operator's inspection rules: the actions of each whose conditions are all met, one rule after the other.

Their arguments may have variables: ``{inventory[cpu][count]}``, ``{node.name}``, ``{plugin_data[x]}``, ``{item}``.
Only names and keys are looked up: no attribute of a Python object can be reached. A text that is one variable stands
for the value itself, with its type; in a longer text it is printed.
"""

import functools
import inspect
import re
import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oslo_log import log

from ingot.common import errors, masking
from ingot.common.json_types import Json
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.operators import ACTIONS, COMBINED, TESTS
from ingot.db import inventory, models

LOG = log.getLogger(__name__)

PHASE = "main"

Use = Mapping[str, Any]
"""A condition or action of a rule: ``op``, ``args``, and ``loop`` and ``multiple`` where they are given."""

Work = Callable[[Draft, Use], bool]

Known = Mapping[str, Any]
"""What variables can be, by first name."""


class UnknownVariable(errors.StepFailed):
    """There is nothing of that name."""


def run(draft: Draft) -> None:
    """Apply all rules, highest priority first, older ones first among equals.

    :raises StepFailed: an action failed, or a rule cannot be understood; the message names rule and place.
    """
    for rule in inventory.list_rules(draft.task.db, PHASE):
        if all(_part(draft, rule, "condition", place, _is_met) for place in enumerate(rule.conditions)):
            LOG.debug("Node %s: inspection rule %s applies", draft.node["uuid"], rule.uuid)
            for place in enumerate(rule.actions):
                _part(draft, rule, "action", place, _act)


def _part(draft: Draft, rule: models.InspectionRule, part: str, place: tuple[int, Use], work: Work) -> bool:
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
    """Yield the arguments by name, for each turn of the loop; without one there is one turn.

    The turns of an object are those of its keys and values.
    """
    # A rule may log or send what it sees: passwords of BMCs are not for that.
    known = {"node": masking.mask(draft.node), "inventory": draft.inventory, "plugin_data": draft.plugin_data}
    named = _name_arguments(function, use["args"])
    turns = [known]
    if "loop" in use:
        loop = _fill(use["loop"], known)
        items = [{"key": key, "value": value} for key, value in loop.items()] if isinstance(loop, dict) else loop
        turns = [{**known, "item": item} for item in items]
    for turn in turns:
        yield {name: _fill(value, turn, lenient) for name, value in named.items()}


def _name_arguments(function: Callable[..., object], args: Any) -> Json:
    """Return arguments by name, however they are given.

    :raises Invalid: there is none of that name, or there are too many.
    """
    names = list(inspect.signature(function).parameters)
    if isinstance(args, Mapping):
        if unknown := sorted(set(args) - set(names)):
            raise errors.Invalid(field="args", value=unknown, allowed=f"They are called: {', '.join(names)}.")
        return dict(args)
    if names[0] == "values" and not (args and isinstance(args[0], list)):
        return {"values": args}
    if len(args) > len(names):
        raise errors.Invalid(field="args", value=args, allowed=f"{len(names)} at most: {', '.join(names)}.")
    return dict(zip(names, args, strict=False))


# Variables


def _fill(value: Any, known: Known, lenient: bool = False) -> Any:
    """Return a value with all variables in it, at any depth, replaced.

    :param lenient: whether what has a variable that is not there becomes None; a list, item by item.
    :raises UnknownVariable: a variable is not there.
    """
    try:
        if isinstance(value, str):
            return _fill_text(value, known)
        if isinstance(value, list):
            return [_fill(one, known, lenient) for one in value]
        if isinstance(value, Mapping):
            return {name: _fill(one, known) for name, one in value.items()}
    except UnknownVariable:
        if not lenient:
            raise
        return None
    return value


def _fill_text(text: str, known: Known) -> Any:
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError:
        return text  # no variables but braces, as a regular expression may have
    fields = [field for _literal, field, _form, _conversion in pieces if field is not None]
    if not all(re.split(r"[.\[]", field, maxsplit=1)[0] in known for field in fields):
        return text
    if len(pieces) == 1 and pieces[0][0] == "" and pieces[0][1] and not pieces[0][2]:
        return _look_up(pieces[0][1], known)
    return "".join(literal + _format(field, form, known) for literal, field, form, _conversion in pieces)


def _format(field: str | None, form: str | None, known: Known) -> str:
    if field is None:
        return ""
    value = _look_up(field, known)
    try:
        return format(value, form or "")
    except (TypeError, ValueError) as exc:
        raise errors.StepFailed(f"{{{field}:{form}}} cannot be printed so: {exc}") from exc


def _look_up(field: str, known: Known) -> Any:
    found: Any = known
    for part in field.replace("]", "").replace("[", ".").split("."):
        try:
            found = found[int(part)] if isinstance(found, list) else found[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise UnknownVariable(f"there is no {{{field}}}: nothing is called {part!r} there") from None
    return found
