"""Answers to pages of other sites (CORS), by oslo.middleware around the application, where a site is allowed.

A request without the header Origin does not pass through it, and where no site is allowed it is not even loaded.
"""

import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from ingot.api.web import versions
from ingot.common import errors, later
from ingot.common.conf import cors as options
from ingot.common.conf import lending

if TYPE_CHECKING:
    from oslo_middleware import cors
else:
    cors = later.Module("oslo_middleware.cors")

_OWN_HEADERS = ("X-Auth-Token", versions.HEADER, "OpenStack-API-Version", *versions.RANGE)
"""Headers that pages may send without [cors] allow_headers, as with Ironic."""

Application = Callable[..., Any]


def check(conf: cfg.ConfigOpts) -> None:
    """Refuse sites that no browser writes so.

    :raises ConfigurationError: there is one.
    """
    for origin in conf.cors.allowed_origin or ():
        parts = urllib.parse.urlsplit(origin)
        if origin != "*" and (origin != f"{parts.scheme}://{parts.netloc}" or not parts.scheme or not parts.netloc):
            raise errors.ConfigurationError(
                option="[cors] allowed_origin",
                value=origin,
                allowed="Write SCHEME://HOST or SCHEME://HOST:PORT, without a path or a slash at the end; or *.",
            )


def wrap(conf: cfg.ConfigOpts, application: Application) -> Application:
    """Return the application that answers pages of other sites, too; itself where no site is allowed.

    :raises ConfigurationError: as :func:`check`.
    """
    check(conf)
    if not conf.cors.allowed_origin:
        return application
    lent = lending.lend(conf, "cors", options.CORS, cors.OPTS)
    lent.set_override("allow_headers", [*conf.cors.allow_headers, *_OWN_HEADERS], group="cors")
    for_pages = cors.CORS(application, lent)

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        return (for_pages if "HTTP_ORIGIN" in environ else application)(environ, start_response)

    return answer
