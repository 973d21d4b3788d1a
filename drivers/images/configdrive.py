"""Config drives: what a deployed system reads about itself at its first boot, as the agent takes it: base64 of gzip.

The layout is OpenStack's: ``openstack/latest/`` with ``meta_data.json``, ``user_data``, ``network_data.json`` and
``vendor_data.json`` on an ISO 9660 file system with the label ``config-2``.
"""

import base64
import gzip
import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ingot.common import config_drives, errors, later
from ingot.db import models
from ingot.drivers.images import fetches
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.task import Task

if TYPE_CHECKING:
    import pycdlib
else:
    pycdlib = later.Module("pycdlib")

_LABEL = "config-2"
_FILES = {
    "meta_data": "meta_data.json",
    "network_data": "network_data.json",
    "user_data": "user_data",
    "vendor_data": "vendor_data.json",
}


def build(task: Task, value: object, keeps_parts: bool = False) -> str | results.PollAfter:
    """Return the config drive of a deployment, as base64 of gzip, or when to ask again for one that is fetched.

    :param value: an object with ``meta_data``, ``user_data``, ``network_data`` and ``vendor_data``, each optional; or
        an http(s) URL of a finished config drive; or a finished one, gzip in base64.
    :param keeps_parts: return an object, once it is known that it can be used, as it is: as JSON.
    :raises Invalid: an object with other keys, or with something other than objects and strings in them.
    :raises ImageError: a finished one that cannot be fetched, is no gzip in base64, or is larger than
        ``[deploy] configdrive_max_size``.
    """
    most = task.conf.deploy.configdrive_max_size * 1024 * 1024
    if isinstance(value, Mapping):
        value = _complete(task, value)
    try:
        if isinstance(value, Mapping):
            packed = gzip.compress(_build_iso(_build_files(value, task.node)), mtime=0)
        elif isinstance(value, str) and config_drives.is_url(value):
            fetched = fetches.fetch(task, "configdrive", value, most)
            if isinstance(fetched, results.PollAfter):
                return fetched
            packed = fetched if fetched.startswith(config_drives.GZIP_MAGIC) else config_drives.decode(fetched)
        elif isinstance(value, str):
            packed = config_drives.decode(value)
        else:
            raise errors.Invalid(f"Invalid configdrive of type {type(value).__name__!r}: an object, a URL or base64.")
        config_drives.check(packed, most)
    except ValueError as exc:
        raise errors.ImageError(f"configdrive: {exc}") from None
    if keeps_parts and isinstance(value, Mapping):
        return json.dumps(value)
    return base64.b64encode(packed).decode()


def _complete(task: Task, parts: Mapping[str, object]) -> Mapping[str, object]:
    """Add what the instance is to know of its networks, where that is missing or says nothing."""
    given = parts.get("network_data")
    if given and not (isinstance(given, Mapping) and not any(given.values())):
        return parts
    found = get_interface(task, NetworkInterface).get_instance_network_data(task)
    return {**parts, "network_data": found} if found else parts


def read(task: Task) -> str | None:
    """Return the deployment's config drive as an agent writes it, whichever deploy interface it was made for.

    :raises IngotError: as :func:`build`.
    """
    drive = task.configdrive()
    if drive is None or not drive.startswith("{"):
        return drive
    built = build(task, json.loads(drive))
    return built if isinstance(built, str) else None


def _build_files(parts: Mapping[str, object], node: models.Node) -> dict[str, bytes]:
    unknown = sorted(set(parts) - set(_FILES))
    if unknown:
        raise errors.Invalid(
            f"Invalid keys of configdrive: {', '.join(map(repr, unknown))}. It has {', '.join(_FILES)}."
        )
    meta_data = parts.get("meta_data")
    if meta_data is None or isinstance(meta_data, Mapping):
        names = {"uuid": node.instance_uuid or node.uuid, "name": node.instance_name or node.name}
        meta_data = {**{key: name for key, name in names.items() if name}, **(meta_data or {})}
    known = {"network_data": node.network_data or None, **parts, "meta_data": meta_data}
    return {_FILES[key]: _encode(key, part) for key, part in known.items() if part is not None}


def _encode(key: str, part: object) -> bytes:
    if isinstance(part, str):
        return part.encode()
    if isinstance(part, Mapping | list):
        return json.dumps(part).encode()
    raise errors.Invalid(f"Invalid type of {key} in configdrive: {type(part).__name__!r}. An object or a string.")


def _build_iso(files: Mapping[str, bytes]) -> bytes:
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=4, joliet=3, rock_ridge="1.09", vol_ident=_LABEL)
    try:
        for folder in ("/openstack", "/openstack/latest"):
            iso.add_directory(folder, rr_name=folder.rpartition("/")[2], joliet_path=folder)
        for name, content in files.items():
            path = f"/openstack/latest/{name}"
            iso.add_fp(io.BytesIO(content), len(content), path, rr_name=name, joliet_path=path)
        written = io.BytesIO()
        iso.write_fp(written)
        return written.getvalue()
    finally:
        iso.close()
