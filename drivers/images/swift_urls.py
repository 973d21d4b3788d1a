"""Signed URLs of Swift, where Glance keeps images: with one, every client can read the image, until the URL ends.

The signature is an HMAC with SHA-256 of method, end and path, with a key of the account that both know.
"""

import hashlib
import hmac
import time
from urllib.parse import quote

from oslo_config import cfg

_NEEDED = ("swift_temp_url_key", "swift_endpoint_url", "swift_account")


def find_lack(conf: cfg.ConfigOpts) -> str | None:
    """Return why no URL can be signed; None if one can."""
    options = conf.glance
    if missing := [f"[glance] {name}" for name in _NEEDED if not options[name]]:
        return f"Signed URLs of Swift need {', '.join(missing)}."
    if options.swift_temp_url_duration < options.swift_temp_url_expected_download_start_delay:
        return (
            f"[glance] swift_temp_url_duration ({options.swift_temp_url_duration}) must be at least "
            f"swift_temp_url_expected_download_start_delay ({options.swift_temp_url_expected_download_start_delay}), "
            "or URLs end before they are used."
        )
    return None


def build(conf: cfg.ConfigOpts, image: str) -> str:
    """Return a signed URL.

    :param image: id of the image in Glance.
    """
    options = conf.glance
    version, account = f"/{options.swift_api_version}", f"/{options.swift_account}"
    path = f"{version}{account}/{_find_container(conf, image)}/{image}"
    expires = _find_end(conf)
    signed = f"GET\n{expires}\n{path}".encode()
    signature = hmac.new(options.swift_temp_url_key.encode(), signed, hashlib.sha256).hexdigest()
    endpoint = options.swift_endpoint_url.rstrip("/").removesuffix(account).removesuffix(version)
    return f"{endpoint}{quote(path)}?temp_url_sig={signature}&temp_url_expires={expires}"


def _find_container(conf: cfg.ConfigOpts, image: str) -> str:
    """Return the container of an image: of several, its id's first characters, hyphens not counted, are the name."""
    container, count = str(conf.glance.swift_container), conf.glance.swift_store_multiple_containers_seed
    if not count:
        return container
    lowered = image.lower()
    return f"{container}_{lowered[: count + lowered[:count].count('-')]}"


def _find_end(conf: cfg.ConfigOpts) -> int:
    """Return when a URL ends, in seconds since 1970.

    Where a cache before Swift is to know URLs again, all conductors have the same one for as long as it is valid.
    """
    options = conf.glance
    seconds = int(options.swift_temp_url_duration)
    if not options.swift_temp_url_cache_enabled:
        return int(time.time()) + seconds
    begins = int(time.time()) + int(options.swift_temp_url_expected_download_start_delay)
    return (begins // seconds + 2) * seconds
