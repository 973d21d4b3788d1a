"""Config drives: what a deployed system reads about itself at its first boot, as the agent takes it: base64 of gzip.

The layout is OpenStack's: ``openstack/latest/`` with ``meta_data.json``, ``user_data``, ``network_data.json`` and
``vendor_data.json`` on an ISO 9660 file system with the label ``config-2``.
"""

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Mapping

import pycdlib
from oslo_config import cfg

from ingot.common import errors
from ingot.db import models
from ingot.drivers.images import instance_image

_LABEL = "config-2"
_FILES = {
    "meta_data": "meta_data.json",
    "network_data": "network_data.json",
    "user_data": "user_data",
    "vendor_data": "vendor_data.json",
}
_GZIP_MAGIC = b"\x1f\x8b"
_AS_GZIP = 16 + zlib.MAX_WBITS


def build(value: object, node: models.Node, conf: cfg.ConfigOpts) -> str:
    """Return the config drive of a deployment, as base64 of gzip.

    :param value: an object with ``meta_data``, ``user_data``, ``network_data`` and ``vendor_data``, each optional; or
        an http(s) URL of a finished config drive; or a finished one, gzip in base64.
    :raises Invalid: an object with other keys, or with something other than objects and strings in them.
    :raises ImageError: a finished one that cannot be fetched, is no gzip in base64, or is larger than
        ``[deploy] configdrive_max_size``.
    """
    limit = conf.deploy.configdrive_max_size * 1024 * 1024
    if isinstance(value, Mapping):
        packed = gzip.compress(_build_iso(_build_files(value, node)), mtime=0)
    elif isinstance(value, str) and value.startswith(("http://", "https://")):
        fetched = instance_image.fetch(value, limit, "configdrive")
        packed = fetched if fetched.startswith(_GZIP_MAGIC) else _decode(fetched)
    elif isinstance(value, str):
        packed = _decode(value.encode())
    else:
        raise errors.Invalid(
            field="type of configdrive", value=type(value).__name__, allowed="An object, a URL or base64."
        )
    _check_size(packed, limit)
    return base64.b64encode(packed).decode()


def _decode(text: bytes) -> bytes:
    try:
        return base64.b64decode(b"".join(text.split()), validate=True)
    except binascii.Error as exc:
        raise errors.ImageError(f"configdrive: it is neither a URL nor base64: {exc}") from exc


def _check_size(packed: bytes, limit: int) -> None:
    """Check the size that the archive has unpacked, unpacking no more than ``limit`` bytes."""
    unpacker = zlib.decompressobj(wbits=_AS_GZIP)
    try:
        size = len(unpacker.decompress(packed, limit + 1))
    except zlib.error as exc:
        raise errors.ImageError(f"configdrive: what base64 holds is not gzip: {exc}") from exc
    if size > limit:
        raise errors.ImageError(f"configdrive: it is larger than {limit} bytes ([deploy] configdrive_max_size)")
    if not unpacker.eof:
        raise errors.ImageError("configdrive: the gzip in it is cut off")


def _build_files(parts: Mapping[str, object], node: models.Node) -> dict[str, bytes]:
    unknown = sorted(set(parts) - set(_FILES))
    if unknown:
        raise errors.Invalid(
            field="keys of configdrive", value=", ".join(unknown), allowed=f"Its keys are: {', '.join(_FILES)}."
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
    raise errors.Invalid(
        field=f"type of {key} in configdrive", value=type(part).__name__, allowed="An object or a string."
    )


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
