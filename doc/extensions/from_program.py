"""Sphinx directive ``from-program``: parts of the reference that the program itself says."""

import collections
import importlib.metadata
import inspect
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import rst
import yaml
from docutils import nodes
from oslo_config import cfg
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ingot.api import policy_sample
from ingot.common import errors, interfaces, metrics, states
from ingot.common.conf import opts
from ingot.conductor.steps import reserved
from ingot.drivers.interfaces import base
from ingot.drivers.loading import entry_points

LIBRARIES = ("keystonemiddleware.auth_token", "oslo.db", "oslo.log", "oslo.messaging", "oslo.policy")
"""Whose options the commands read beside Ingot's own."""

ALERTS = pathlib.Path(__file__).parents[2] / "packaging" / "monitoring" / "alerts.yaml"

WITHOUT_EFFECT = ("oslo_messaging_amqp", "oslo_messaging_kafka")

STATE_TYPES = (
    ("stable", states.STABLE, "Nothing happens until a user asks for it."),
    ("working", states.WORKING, "A conductor works on the node."),
    ("waiting", states.WAITING, "The machine's agent, or the BMC, has to do something first. An abort is possible."),
    ("held", states.HELD, "A step ``hold`` waits for the verb ``unhold``."),
    ("failed", states.FAILED, "``last_error`` says why. The machine stays as it is."),
)


def _options() -> Iterator[str]:
    groups: dict[str, dict[str, cfg.Opt]] = collections.defaultdict(dict)
    for group, options in opts.list_opts():
        for option in options:
            if not option.help:
                raise errors.ConfigurationError(f"option [{group}] {option.name} has no help")
            groups[group][option.name] = option
    for point in importlib.metadata.entry_points(group="oslo.config.opts"):
        for group, options in point.load()() if point.name in LIBRARIES else ():
            name = getattr(group, "name", group) or "DEFAULT"
            for option in options if name not in WITHOUT_EFFECT else ():
                groups[name].setdefault(option.name, option)
    for name in sorted(groups, key=lambda name: (name != "DEFAULT", name)):
        yield from rst.heading(f"[{name}]", "-")
        for option in sorted(groups[name].values(), key=lambda option: option.dest):
            if not option.deprecated_for_removal:
                yield from _option(name, option)


def _option(group: str, option: cfg.Opt) -> Iterator[str]:
    default = option.sample_default if option.sample_default is not None else option.default
    yield from (f".. confval:: [{group}] {option.dest}", f"   :type: {_type(option.type)}")
    shown = ", ".join(map(str, default)) if isinstance(default, list | tuple) else default
    if option.secret:
        yield "   :default: secret"
    elif shown not in (None, "", {}):
        yield f"   :default: {rst.literal(str(shown))}"
    yield from ("", f"   {rst.escape(option.help or '')}")
    if choices := getattr(option.type, "choices", None):
        yield from ("", f"   One of: {rst.escape(', '.join(str(one) for one in choices if one is not None))}.")
    yield from ("", "   It is read anew on a reload." if option.mutable else "", "")


def _type(kind: object) -> str:
    """Return the type of an option in words, with its limits."""
    name = str(getattr(kind, "type_name", "string value")).removesuffix(" value")
    limits = [
        f"{word} {value}"
        for word in ("min", "max")
        if (value := getattr(kind, word, None)) is not None and name != "port"
    ]
    return f"{name}, {' and '.join(limits)}" if limits else name


def _policies() -> Iterator[str]:
    rules: dict[str, list[Any]] = collections.defaultdict(list)
    for rule in policy_sample.list_rules():
        parts = rule.name.split(":")
        rules[parts[1] if len(parts) > 2 else "building blocks" if len(parts) == 1 else "other"].append(rule)
    for name in sorted(rules, key=lambda name: (name == "building blocks", name)):
        yield from rst.heading(name.replace("_", " ").capitalize(), "-")
        for rule in rules[name]:
            yield from (f".. describe:: {rule.name}", "", f"   {rst.escape(rule.description)}", "")
            for operation in getattr(rule, "operations", ()):
                yield f"   - ``{operation['method']} {operation['path']}``"
            yield from ("", f"   Default: ``{rule.check_str or '(every user)'}``", "")


def _installed(kind: str) -> dict[str, type[base.BaseInterface]]:
    """Return the classes of a type of interface that Ingot itself brings, by their names."""
    points = importlib.metadata.entry_points(group=entry_points.interface_group(kind))
    return {point.name: point.load() for point in points if point.value.startswith("ingot.")}


def _hardware_types() -> Iterator[str]:
    conf = opts.load([], prog="ingot-reference", files=[])
    for point in sorted(importlib.metadata.entry_points(group=entry_points.TYPES), key=lambda point: point.name):
        if not point.value.startswith("ingot."):
            continue
        hardware = point.load()()
        yield from rst.heading(point.name, "-")
        rows, keys = [], {}
        for kind in interfaces.TYPES:
            names = {cls: name for name, cls in _installed(kind).items()}
            supported = [names[cls] for cls in hardware.list_supported(kind)]
            rows.append((f"``{kind}``", ", ".join(f"``{name}``" for name in supported)))
            for cls in hardware.list_supported(kind):
                for key, about in cls(conf, names[cls]).get_properties().items():
                    keys.setdefault((key, about), []).append(f"``{names[cls]}``")
        yield from rst.table(("Interface", "Implementations, best first"), rows, (20, 80))
        found = [
            (f"``{key}``", rst.escape(about), ", ".join(dict.fromkeys(users)))
            for (key, about), users in sorted(keys.items())
        ]
        if found:
            yield from rst.table(("Key of driver_info", "Meaning", "Read by"), found, (26, 48, 26))
        else:
            yield from ("It reads nothing from ``driver_info``.", "")


def _steps() -> Iterator[str]:
    conf = opts.load([], prog="ingot-reference", files=[])
    for kind in interfaces.TYPES:
        found: dict[str, dict[str, Any]] = {}
        for name, cls in sorted(_installed(kind).items()):
            for flow in base.KINDS:
                for step, declared in cls(conf, name).declarations(flow).items():
                    one = found.setdefault(step, {"by": [], "flows": {}, "args": {}, "about": ""})
                    one["by"].append(name)
                    one["flows"].setdefault(flow, {}).setdefault(_priority(declared.priority), []).append(name)
                    for arg, about in (declared.argsinfo or {}).items():
                        one["args"].setdefault(arg, (about, []))[1].append(name)
                    one["about"] = one["about"] or _first_line(getattr(cls, step))
        if found:
            yield from rst.heading(kind, "-")
        for step, one in sorted(found.items()):
            yield from _step(f"{kind}.{step}", one)
    yield from rst.heading("On every interface", "-")
    for step, rule in reserved.STEPS.items():
        about = _first_line(rule.run) if rule.run.__doc__ else ""
        args = {name: (argument, []) for name, argument in rule.argsinfo.items()}
        yield from _step(step, {"by": [], "flows": {}, "args": args, "about": about})


def _step(title: str, one: dict[str, Any]) -> Iterator[str]:
    yield from (f".. describe:: {title}", "")
    if one["about"]:
        yield from (f"   {rst.escape(one['about'])}", "")
    for flow, priorities in one["flows"].items():
        said = (f"{priority} {_name_some(names, one['by'])}".strip() for priority, names in sorted(priorities.items()))
        yield f"   - {flow}: priority {', '.join(said)}"
    if one["by"]:
        yield from ("", f"   Implementations: {', '.join(f'``{name}``' for name in dict.fromkeys(one['by']))}", "")
    rows = [
        (
            f"``{name}``" + (" (required)" if about.get("required") else ""),
            about.get("type", "any"),
            f"{_name_some(takers, one['by'])} {rst.escape(about['description'])}".strip(),
        )
        for name, (about, takers) in one["args"].items()
    ]
    if rows:
        yield ""
        yield from (f"   {line}" for line in rst.table(("Argument", "Type", "Meaning"), rows, (28, 16, 56)))
    yield ""


def _name_some(names: list[str], of: list[str]) -> str:
    """Return the implementations that something is said of, or nothing where it is all of them."""
    return "" if set(names) == set(of) else f"({', '.join(f'``{name}``' for name in dict.fromkeys(names))})"


def _priority(priority: object) -> str:
    if isinstance(priority, base.FromOption):
        return f"of :confval:`[{priority.group}] {priority.name}`"
    return "of the agent" if priority is None else str(priority)


def _first_line(described: Callable[..., object]) -> str:
    return (inspect.getdoc(described) or "").split("\n")[0]


def _states() -> Iterator[str]:
    for title, members, about in STATE_TYPES:
        yield from rst.heading(title.capitalize(), "-")
        yield from (about, "")
        rows = [
            (
                f"``{state}``",
                ", ".join(f"``{verb}`` → ``{then}``" for verb, then in states.TRANSITIONS.get(state, {}).items()),
            )
            for state in sorted(members)
        ]
        yield from rst.table(("State", "What leads out of it, and where"), rows, (25, 75))


def _errors() -> Iterator[str]:
    by_code: dict[int, list[type[errors.IngotError]]] = collections.defaultdict(list)
    for _, cls in inspect.getmembers(errors, inspect.isclass):
        if issubclass(cls, errors.IngotError):
            by_code[cls.code].append(cls)
    for code, found in sorted(by_code.items()):
        yield from rst.heading(f"HTTP {code}", "-")
        rows = []
        for cls in found:
            about = " ".join((cls.__doc__ or "").split()) if "__doc__" in vars(cls) and cls.__doc__ else ""
            text = re.sub(r":\w+:`~?([\w.]+)`", r"\1", about)
            rows.append((f"``{cls.__name__}``", rst.escape(text), rst.escape(cls.template)))
        yield from rst.table(("Error", "When", "Message"), rows, (24, 38, 38))


def _metrics() -> Iterator[str]:
    rows = [
        (f"``{row.name}``", row.kind, ", ".join(f"``{label}``" for label in row.labels), rst.escape(row.help))
        for row in sorted(metrics.TABLE.values())
    ]
    yield from rst.table(("Metric", "Type", "Labels", "Meaning"), rows, (36, 12, 18, 34))


def _alerts() -> Iterator[str]:
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            notes = rule["annotations"]
            yield from rst.heading(rule["alert"], "^")
            yield from (f"*{rule['labels']['severity'].capitalize()}.* {rst.escape(notes['description'])}", "")
            yield from (f"**What to do.** {rst.escape(notes['action'])}", "")
            waits = f", for {rule['for']}" if "for" in rule else ""
            yield from (f"Fires when ``{' '.join(rule['expr'].split())}``{waits}.", "")


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "alerts": _alerts,
    "errors": _errors,
    "hardware-types": _hardware_types,
    "metrics": _metrics,
    "options": _options,
    "policies": _policies,
    "states": _states,
    "steps": _steps,
}


class FromProgram(SphinxDirective):
    """Takes the name of a part; stands on a page of its own, below its title and introduction."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # it depends on the whole program
        return self.parse_text_to_nodes("\n".join(PARTS[self.arguments[0]]()), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("from-program", FromProgram)
    return {"parallel_read_safe": True}
