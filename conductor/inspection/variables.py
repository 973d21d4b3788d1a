"""Variables in the arguments of rules: ``{inventory[cpu][count]}``, ``{node.name}``, ``{plugin_data[x]}``, ``{item}``.

Only names and keys are looked up: no attribute of a Python object can be reached. A text that is one variable stands
for the value itself, with its type; in a longer text it is printed.
"""

import string
from collections.abc import Mapping
from typing import Any

from ingot.common import errors

_FORMATTER = string.Formatter()

Known = Mapping[str, Any]
"""What there is to look up, by first name."""


class Unknown(errors.StepFailed):
    """There is nothing of that name."""


def fill(value: Any, known: Known) -> Any:
    """Return a value with all variables in it, at any depth, replaced.

    :param known: what there is, by first name.
    :raises Unknown: a variable is not there.
    """
    if isinstance(value, str):
        return _fill_text(value, known)
    if isinstance(value, list):
        return [fill(one, known) for one in value]
    if isinstance(value, Mapping):
        return {name: fill(one, known) for name, one in value.items()}
    return value


def _fill_text(text: str, known: Known) -> Any:
    try:
        pieces = list(_FORMATTER.parse(text))
    except ValueError:
        return text  # no variables but braces, as a regular expression may have
    if not all(field is None or _is_variable(field, known) for _literal, field, _form, _conversion in pieces):
        return text
    if len(pieces) == 1 and pieces[0][0] == "" and pieces[0][1] and not pieces[0][2]:
        return _look_up(pieces[0][1], known)
    return "".join(literal + _format(field, form, known) for literal, field, form, _conversion in pieces)


def _is_variable(field: str, known: Known) -> bool:
    return field.replace("[", ".").partition(".")[0] in known


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
            raise Unknown(f"there is no {{{field}}}: nothing is called {part!r} there") from None
    return found
