"""BIOS attributes: what a registry says of them, and values as Redfish and as Ingot's API have them."""

from collections.abc import Callable, Mapping
from functools import partial

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.redfish import connection, fields

_LARGEST = 16 * 2**20  # bytes of a registry

_Kind = Callable[[object], bool]
"""Tells whether a value can be kept as one of its kind."""


def _is_number(value: object, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2 ** (bits - 1)


_COLUMNS: dict[str, tuple[str, _Kind]] = {
    "attribute_type": ("Type", lambda value: isinstance(value, str) and len(value) < 256),
    "lower_bound": ("LowerBound", partial(_is_number, bits=64)),
    "upper_bound": ("UpperBound", partial(_is_number, bits=64)),
    "min_length": ("MinLength", partial(_is_number, bits=32)),
    "max_length": ("MaxLength", partial(_is_number, bits=32)),
    "read_only": ("ReadOnly", lambda value: isinstance(value, bool)),
    "reset_required": ("ResetRequired", lambda value: isinstance(value, bool)),
    "unique": ("IsSystemUniqueProperty", lambda value: isinstance(value, bool)),
}
"""Column of ``BiosSetting`` -> property of an attribute in a registry, and what of it can be kept: some have bounds of
2^64 - 1, or texts in place of numbers. The rest is left out."""


def read_registry(machine: connection.Machine, name: str | None) -> dict[str, Json]:
    """Return the attributes of a registry by name; none if the BMC has no such registry, or it cannot be read.

    Only this registry is read: a BMC has dozens, some of megabytes.
    """
    place = fields.link(machine.service.json, "Registries")
    if not name or not place:
        return {}
    listed = fields.links(machine.read_optional(place), "Members")
    # Nearly all name it in its path; where none does, each is asked what it is.
    named = [path for path in listed if path.rstrip("/").rpartition("/")[2] in (name, name.partition(".")[0])]
    for path in named or listed:
        file = machine.read_optional(path)
        if name not in (file.get("Registry"), file.get("Id")) and path not in named:
            continue
        found = machine.read_optional(_find_file(file), _LARGEST) if _find_file(file) else {}
        entries = fields.parts(fields.part(found, "RegistryEntries"), "Attributes")
        named_entries = ((fields.text(one, "AttributeName"), one) for one in entries)
        return {attribute: one for attribute, one in named_entries if attribute}
    return {}


def _find_file(file: Json) -> str:
    """Return where the registry itself is, in English if there are several."""
    places = [one for one in fields.parts(file, "Location") if fields.path(one, "Uri")]
    places.sort(key=lambda one: not (fields.text(one, "Language") or "en").lower().startswith("en"))
    return str(places[0]["Uri"]) if places else ""


def describe(name: str, value: object, about: Json | None) -> Json:
    """Return a setting as columns of ``BiosSetting``."""
    about = about or {}
    columns = {column: about[key] if fits(about.get(key)) else None for column, (key, fits) in _COLUMNS.items()}
    return {"name": name, "value": show(value), "allowable_values": _list_values(about), **columns}


def show(value: object) -> str | None:
    """Return a value as the API has it: a string, ``true`` and ``false`` for Booleans."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _list_values(about: Json) -> list[str]:
    return [str(one["ValueName"]) for one in fields.parts(about, "Value") if "ValueName" in one]


def parse_settings(settings: object, current: Json, registry: Mapping[str, Json]) -> Json:
    """Return the values of settings by name, in the types of the machine.

    :param settings: from a user.
    :param current: what the machine has.
    :raises Invalid: one that the machine does not have, or a value that it does not accept; all of them are named.
    """
    if not isinstance(settings, list) or not settings or not all(map(_is_setting, settings)):
        allowed = "It must be a list of objects with name and value."
        raise errors.Invalid(field="settings", value=settings, allowed=allowed)
    found, refused = {}, []
    for setting in settings:
        name, value = setting["name"], setting["value"]
        if name not in current:
            refused.append(f"{name}: the machine has no such setting.")
            continue
        try:
            found[name] = _parse(value, current[name], registry.get(name) or {})
        except ValueError as exc:
            refused.append(f"{name}: {exc}")
    if refused:
        names = [setting["name"] for setting in settings]
        raise errors.Invalid(field="settings", value=names, allowed=" ".join(refused))
    return found


def _is_setting(setting: object) -> bool:
    return isinstance(setting, dict) and isinstance(setting.get("name"), str) and "value" in setting


def _parse(value: object, current: object, about: Json) -> object:
    """
    :raises ValueError: the setting cannot have this value; the message says why.
    """
    if about.get("ReadOnly"):
        raise ValueError("it can only be read.")
    kind = fields.text(about, "Type") or {bool: "Boolean", int: "Integer"}.get(type(current), "String")
    return _PARSERS.get(kind, _parse_text)(value, about)


def _parse_boolean(value: object, about: Json) -> bool:
    found = {"true": True, "false": False}.get(str(value).lower())
    if found is None:
        raise ValueError("it can be true or false.")
    return found


def _parse_integer(value: object, about: Json) -> int:
    try:
        number = None if isinstance(value, bool | float) else int(str(value))
    except ValueError:
        number = None
    if number is None:
        raise ValueError("it must be an integer.")
    _check_bounds(number, about, ("LowerBound", "UpperBound"), "it must be {}.")
    return number


def _parse_choice(value: object, about: Json) -> str:
    text, allowed = show(value) or "", _list_values(about)
    if allowed and text not in allowed:
        raise ValueError(f"it can be {', '.join(allowed)}.")
    return text


def _parse_text(value: object, about: Json) -> str:
    text = show(value) or ""
    _check_bounds(len(text), about, ("MinLength", "MaxLength"), "it must have {} characters.")
    return text


_PARSERS: dict[str, Callable[[object, Json], object]] = {
    "Boolean": _parse_boolean,
    "Integer": _parse_integer,
    "Enumeration": _parse_choice,
}
"""By type; all others are texts."""


def _check_bounds(number: int, about: Json, names: tuple[str, str], message: str) -> None:
    low, high = (bound if _is_number(bound, 65) else None for bound in map(about.get, names))
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(message.format(_name_range(low, high)))


def _name_range(low: object, high: object) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low is None else f"{low} to {high}"
