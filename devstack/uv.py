#!/usr/bin/env python3
"""Runs uv, which makes environments in seconds where pip needs minutes, with pip's settings.

    devstack/uv.py pip install --python DIRECTORY REQUIREMENT...      any command of uv

Where packages come through a proxy or from a mirror, files or variables of pip say so: uv gets the same. Its own
variables go first. It is the uv beside the Python that runs this.
"""

import ast
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping

VARIABLES = {
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "constraint": "UV_CONSTRAINT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "proxy": "ALL_PROXY",
    "retries": "UV_HTTP_RETRIES",
    "timeout": "UV_HTTP_TIMEOUT",
    "trusted-host": "UV_INSECURE_HOST",
}
"""Settings of pip, and what uv has for each."""

# As pip does: it takes the best of all indexes, not that of the first which has any, and trusts whom the system trusts.
AS_PIP = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "true"}

SEPARATORS = {"UV_FIND_LINKS": ","}
"""Of the values that have another than a space."""

SECTIONS = ("global", "install", ":env:")
"""Of pip's settings; the later ones go first."""


def translate(listed: str) -> dict[str, str]:
    """Return the variables for uv.

    :param listed: what ``pip config list`` prints: ``global.index-url='https://...'``.
    """
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, setting = name.partition(".")
        if section in found and setting in VARIABLES:
            found[section][VARIABLES[setting]] = ast.literal_eval(value)
    variables = {name: value for section in found.values() for name, value in section.items()}
    return {name: SEPARATORS.get(name, " ").join(value.split()) for name, value in variables.items()}


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which uv does what pip would do.

    :param own: the environment of this process.
    """
    pip = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(pip, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {**AS_PIP, **translate(listed), **own}


if __name__ == "__main__":
    uv = pathlib.Path(sys.executable).with_name("uv")
    os.execve(uv, [uv, *sys.argv[1:]], environment(os.environ))  # noqa: S606  it is this process from here on
