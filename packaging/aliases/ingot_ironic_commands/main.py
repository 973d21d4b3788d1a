"""Runs the command of Ingot that stands for one of Ironic.

The process becomes that command, so that a supervisor sees one process with one id.
"""

import os
import pathlib
import shutil
import sys
from collections.abc import Sequence

from oslo_config import cfg

_CONFIGURED = ("--config-file", "--config-dir")
_HELP = frozenset(("-h", "--help", "--version"))
_SCHEMA = "upgrade"
"""What makes the schema, and what Ironic's command does if none is named."""

COMMANDS = frozenset(
    (
        *("upgrade", "expand", "contract", "version", "stamp", "revision", "add_key", "online_data_migrations"),
        *("import-ironic", "export-ironic", "restored", "confirm"),
    )
)
"""Of ``ingot-dbsync``. Any other word is the value of an option, or a mistake for that command to name."""


def find_files(program: str) -> list[str]:
    """Return the options that name the configuration files where Ironic looks for them."""
    files = [f"--config-file={path}" for path in cfg.find_config_files("ironic", program)]
    return files + [f"--config-dir={path}" for path in cfg.find_config_dirs("ironic", program)]


def translate(program: str, arguments: Sequence[str]) -> list[str]:
    """Return the command line of Ingot for one of Ironic.

    :param program: name of Ironic's command.
    """
    given = list(arguments)
    named = any(word.startswith(_CONFIGURED) for word in given) or not _HELP.isdisjoint(given)
    if program == "ironic-dbsync":
        given = [_SCHEMA if word == "create_schema" else word for word in given]
        if COMMANDS.isdisjoint(given) and _HELP.isdisjoint(given):
            given.append(_SCHEMA)
    return [program.replace("ironic", "ingot", 1), *([] if named else find_files(program)), *given]


def main() -> None:
    """Become the command of Ingot."""
    own = pathlib.Path(sys.argv[0])
    command = translate(own.name, sys.argv[1:])
    beside = own.resolve().with_name(command[0])
    found = str(beside) if beside.exists() else shutil.which(command[0])
    if found is None:
        sys.exit(f"{own.name}: {command[0]} is not installed: pip install ingot")
    os.execv(found, command)  # noqa: S606 - the arguments are those of the caller
