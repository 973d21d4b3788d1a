"""What an agent reads on its boot medium beside kernel and ramdisk, or on a second medium: its settings."""

import json
from collections.abc import Mapping
from pathlib import Path

from oslo_config import cfg

from ingot.common import errors

_FOLDER = "etc/ironic-python-agent"
_AUTHORITIES = f"{_FOLDER}/ironic.crt"
_OPTIONS = f"{_FOLDER}.d/ingot.conf"
_NETWORK_DATA = "openstack/latest/network_data.json"
_PREFIX = "ipa-"

WITH_METADATA = "config-2"
"""The label by which the agent, and what configures networks before it, finds a medium with a node's network_data."""


PARAMETERS = "parameters.txt"
"""The file of a second medium that the agent reads as it does its kernel arguments."""


def build(conf: cfg.ConfigOpts, network_data: Mapping[str, object], parameters: str) -> dict[str, bytes]:
    """Return files by their paths.

    :param parameters: kernel arguments, of which those for the agent become options in its configuration.
    :raises ImageError: the authorities cannot be read.
    """
    options, files = _name_options(parameters), {}
    if network_data:
        files[_NETWORK_DATA] = json.dumps(network_data).encode()
    if conf.agent.api_ca_file:
        files[_AUTHORITIES] = _read_authorities(conf.agent.api_ca_file)
        options["cafile"] = f"/{_AUTHORITIES}"
    if options:
        # oslo.config puts another option's value in place of a dollar and its name.
        lines = (f"{name} = {value.replace('$', '$$')}\n" for name, value in options.items())
        files[_OPTIONS] = "".join(("[DEFAULT]\n", *lines)).encode()
    return files


def _name_options(parameters: str) -> dict[str, str]:
    """Return the agent's options that parameters set: ``ipa-api-url`` is its ``api_url``."""
    pairs = (word.removeprefix(_PREFIX).partition("=") for word in parameters.split() if word.startswith(_PREFIX))
    return {name.replace("-", "_"): value or "1" for name, _, value in pairs}


def _read_authorities(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as exc:
        raise errors.ImageError(f"[agent] api_ca_file {path}: {exc.strerror}") from exc
