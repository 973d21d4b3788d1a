"""Reads configuration files as an operator wrote them, and says of each option what becomes of it.

oslo.config passes over what is unknown without a word, and reports one mistake at a time.
"""

import argparse
import difflib
import glob
import importlib.metadata
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from oslo_config import cfg

from ingot.common import later
from ingot.common.conf import ironic
from ingot.common.conf.ironic import Verdict

if TYPE_CHECKING:
    from keystoneauth1 import loading

    from ingot.common.conf import cinder, glance, introspection, neutron, nova
else:
    cinder = later.Module("ingot.common.conf.cinder")
    glance = later.Module("ingot.common.conf.glance")
    introspection = later.Module("ingot.common.conf.introspection")
    neutron = later.Module("ingot.common.conf.neutron")
    nova = later.Module("ingot.common.conf.nova")
    loading = later.Module("keystoneauth1.loading")

_SECTION = re.compile(r"\[([^\]]+)\]\s*")
_OPTION = re.compile(r"([^\s=:#;\[][^=:]*?)\s*[=:]\s*(.*)")

CINDER, GLANCE, INSPECTOR, NEUTRON, NOVA = "cinder", "glance", "inspector", "neutron", "nova"

SERVICES: Mapping[str, Callable[[], list[cfg.Opt]]] = {
    CINDER: lambda: cinder.OPTIONS,
    GLANCE: lambda: glance.OPTIONS,
    INSPECTOR: lambda: introspection.OPTIONS,
    NEUTRON: lambda: neutron.OPTIONS,
    NOVA: lambda: nova.OPTIONS,
}
"""Options of Ingot's own groups that need a large library."""

_LIBRARIES = (
    *("oslo.log", "oslo.db", "oslo.messaging", "oslo.policy", *SERVICES),
    *("keystonemiddleware.auth_token", "keystonemiddleware.audit"),
)
"""Whose options Ingot's processes have. They are loaded in this order, and only if an option is not found before."""

_OF_SWITCHES = ("genericswitch:", "ngs")
"""What begins the names of groups that describe switches; the library that speaks to these reads them."""

_LOGINS = (*SERVICES, "keystone_authtoken")
"""Groups whose options depend on auth_type."""

_CLOSE = 0.75


class Setting(NamedTuple):
    """An option as it stands in a file."""

    file: str
    line: int
    group: str
    name: str
    value: str

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def option(self) -> str:
        return f"[{self.group}] {self.name}"


class Finding(NamedTuple):
    """What becomes of options of one group that are not used as they stand.

    :param where: file and line of the first.
    """

    verdict: Verdict
    where: str
    group: str
    names: tuple[str, ...]
    advice: str

    def describe(self, verdict: str = "") -> str:
        """Return it as a line."""
        return f"{self.where}: [{self.group}] {', '.join(self.names)}: {verdict}{self.advice}"

    def __str__(self) -> str:
        return self.describe(f"{self.verdict}. ")


class Declared(NamedTuple):
    """An option that is known, and the name it should be written with."""

    group: str
    opt: cfg.Opt


class CommandLine(NamedTuple):
    """What a command line says of configuration files, and the rest of it."""

    files: list[str] | None
    folders: list[str] | None
    rest: list[str]


def read_command_line(arguments: Sequence[str]) -> CommandLine:
    """Return the parts of a command line."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config-file", action="append")
    parser.add_argument("--config-dir", action="append")
    try:
        named, rest = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:  # oslo.config's parser says what is wrong, and how to use the command
        return CommandLine([], [], list(arguments))
    return CommandLine(named.config_file, named.config_dir, rest)


def list_files(line: CommandLine, prog: str, files: Sequence[str] | None) -> list[str]:
    """Return the files that oslo.config will read, in its order.

    :param files: instead of the default ones, if the command line names none.
    """
    single = line.files or (cfg.find_config_files("ingot", prog) if files is None else list(files))
    folders = line.folders or cfg.find_config_dirs("ingot", prog)
    return [*single, *(file for folder in folders for file in sorted(glob.glob(os.path.join(folder, "*.conf"))))]


def read(file: str, mistakes: list[str]) -> list[Setting]:
    """Return what a file sets.

    :param mistakes: gets what keeps the file, or one of its lines, from being read.
    """
    settings: list[Setting] = []
    group: str | None = None
    for number, line in enumerate(_read_lines(file, mistakes), 1):
        where = f"{file}:{number}"
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if line[0].isspace():
            if not settings or group is None:
                mistakes.append(
                    f"{where}: a line that begins with a space goes on with an option; there is none before."
                )
            else:
                settings[-1] = settings[-1]._replace(value=f"{settings[-1].value}\n{line.strip()}")
        elif section := _SECTION.fullmatch(line):
            group = section[1].strip()
            group = group if group == "DEFAULT" else group.lower()
        elif group is None:
            mistakes.append(f"{where}: options stand in a group: write [DEFAULT], or the name of another one, before.")
            group = ""  # this is said once
        elif option := _OPTION.fullmatch(line):
            settings.append(Setting(file, number, group, option[1], _unquote(option[2].strip())))
        else:  # what it says is not shown: it may be a secret
            mistakes.append(f"{where}: this is neither [group] nor option = value.")
    return settings


def _read_lines(file: str, mistakes: list[str]) -> list[str]:
    try:
        text = pathlib.Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        mistakes.append(f"{file}: this is not text in UTF-8 (byte {exc.start}).")
        return []
    except OSError as exc:
        mistakes.append(f"{file}: the file cannot be read: {exc.strerror}.")
        return []
    if text.startswith("\ufeff"):
        mistakes.append(f"{file}: this begins with a byte order mark: save it as UTF-8 without.")
    return text.removeprefix("\ufeff").splitlines()


def _unquote(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


class Catalog:
    """All options that a process of Ingot may be given, by group and name: its own, its libraries' and its drivers'.

    :param groups: Ingot's own.
    """

    def __init__(self, groups: Mapping[str, Iterable[cfg.Opt]]) -> None:
        self._known: dict[tuple[str, str], Declared] = {}
        self._add(groups.items())
        self._more = [*_LIBRARIES, *_list_drivers()]

    def _add(self, listed: Iterable[tuple[Any, Iterable[cfg.Opt]]]) -> None:
        for given, options in listed:
            group = str(getattr(given, "name", given) or "DEFAULT")
            for opt in options:
                declared = Declared(group, opt)
                for name in (opt.dest, opt.name):
                    self._known[group, name] = declared
                for old in opt.deprecated_opts:
                    self._known.setdefault((old.group or group, old.name or opt.dest), declared)

    def find(self, setting: Setting) -> Declared | None:
        """Return the option that a file sets, if there is one."""
        key = (setting.group, setting.name)
        while key not in self._known and self._more:
            name = self._more.pop(0)
            if name in SERVICES:
                # Where that service itself is installed, its own options have a namespace of this name.
                self._add([(name, SERVICES[name]())])
                continue
            for entry_point in importlib.metadata.entry_points(group="oslo.config.opts", name=name):
                self._add(entry_point.load()())
        return self._known.get(key)

    def add_plugins(self, settings: Iterable[Setting]) -> None:
        """Add the options of the plug-ins for authentication that files name."""
        for setting in settings:
            if setting.group in _LOGINS and setting.name in ("auth_type", "auth_plugin"):
                try:
                    options = loading.get_auth_plugin_conf_options(setting.value)
                except Exception:  # noqa: BLE001, S112 - what uses the plug-in reports that it cannot be loaded
                    continue
                self._add([(setting.group, options)])

    def advise(self, setting: Setting) -> tuple[Verdict, str]:
        """Return what becomes of an option that is not known."""
        if listed := ironic.find(setting.group, setting.name, setting.value):
            return listed
        elsewhere = sorted({group for group, name in self._known if name == setting.name and group not in _LOGINS})
        if elsewhere:
            return Verdict.UNKNOWN, f"It belongs into [{'] or ['.join(elsewhere[:3])}]."
        if setting.group not in {group for group, _name in self._known}:
            return Verdict.UNKNOWN, "Ingot has no such group."
        here = {name for group, name in self._known if group == setting.group}
        close = difflib.get_close_matches(setting.name, here, 1, _CLOSE)
        return Verdict.UNKNOWN, f"Did you mean {close[0]}?" if close else "Ingot has no such option: remove it."


def _list_drivers() -> list[str]:
    """Return the namespaces of options that packages with drivers have."""
    names = set()
    for distribution in importlib.metadata.distributions():
        points = distribution.entry_points
        if any(point.group.startswith("ingot.") for point in points):
            names |= {point.name for point in points if point.group == "oslo.config.opts" and point.name != "ingot"}
    return sorted(names)


def check_values(settings: Sequence[Setting], catalog: Catalog) -> Iterator[tuple[Declared, str]]:
    """Yield each option whose value cannot be used, and why; that of a secret is not shown."""
    given = {(setting.group, setting.name): setting.value for setting in settings}
    for setting in settings:
        declared = catalog.find(setting)
        if declared is None:
            continue
        try:
            value = _substitute(setting, given, catalog)
            if "$" not in value:
                declared.opt.type(value)
        except LookupError:
            yield declared, f"{setting.where}: {setting.option}: {NO_SUCH_NAME}"
        except (ValueError, TypeError) as exc:
            why = "it cannot be used" if declared.opt.secret else f"{setting.value}: {str(exc)[:300].rstrip('.')}"
            yield declared, f"{setting.where}: {setting.option} = {why}."


NO_SUCH_NAME = "$ begins the name of another option, and there is none of that name. Write $$ for the character itself."


def _substitute(setting: Setting, given: Mapping[tuple[str, str], str], catalog: Catalog) -> str:
    """Return the value of an option, with those of the options that it names.

    :raises LookupError: there is none of that name.
    """
    template = cfg.ConfigOpts.Template(setting.value.replace(r"\$", "$$"))
    values: dict[str, object] = {}
    for name in template.get_identifiers():
        group, option = name.split(".", 1) if "." in name else (setting.group, name)
        for key in ((group, option), ("DEFAULT", name)):
            if known := catalog.find(setting._replace(group=key[0], name=key[1])):
                value = given.get(key, known.opt.default)
                values |= {} if value is None else {name: value}
                break
        else:
            raise LookupError(name)
    return template.safe_substitute(values)


def judge(settings: Sequence[Setting], catalog: Catalog) -> list[Finding]:
    """Return what becomes of the options that are not used as they stand; those of one reason together."""
    merged: dict[tuple[Verdict, str, str], dict[str, Setting]] = {}
    for setting in settings:
        if setting.group.startswith(_OF_SWITCHES):
            continue
        listed = ironic.find(setting.group, setting.name, setting.value) if setting.group in ironic.GROUPS else None
        declared = None if listed else catalog.find(setting)
        if declared is None:
            verdict, advice = listed or catalog.advise(setting)
        elif (declared.group, setting.name) in ((setting.group, declared.opt.dest), (setting.group, declared.opt.name)):
            continue
        else:
            verdict, advice = Verdict.RENAMED, f"It is [{declared.group}] {declared.opt.name} now, and works as that."
        merged.setdefault((verdict, setting.group, advice), {}).setdefault(setting.name, setting)
    return [
        Finding(verdict, next(iter(found.values())).where, group, tuple(found), advice)
        for (verdict, group, advice), found in merged.items()
    ]
