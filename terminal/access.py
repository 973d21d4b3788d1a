"""How the API is reached, and with what credentials: by the options and variables of all clients of OpenStack.

Without Keystone nothing but requests is loaded, which a command feels that is typed all day.
"""

import argparse
import importlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import requests
from requests import auth

from ingot.common import errors, later

if TYPE_CHECKING:
    from keystoneauth1 import exceptions, loading, session
else:
    exceptions, loading = later.Module("keystoneauth1.exceptions"), later.Module("keystoneauth1.loading")
    session = later.Module("keystoneauth1.session")

DEFAULT_ENDPOINT = "http://127.0.0.1:6385"

_OPTIONS = {
    "endpoint": f"URL of the API. Default: that of the catalog of Keystone; without Keystone {DEFAULT_ENDPOINT}.",
    "username": "With a password and without Keystone, for HTTP basic authentication.",
    "password": "Better in the environment: other users of this host see command lines.",
    "cloud": "Name of a cloud in clouds.yaml, which says everything else; needs openstacksdk.",
    "auth-type": "none, http_basic, or a plug-in of keystoneauth, as v3applicationcredential.",
    "auth-url": "Keystone.",
    "project-name": "",
    "user-domain-name": "",
    "project-domain-name": "",
    "system-scope": "all, for the rights of operators.",
    "region-name": "",
    "interface": "Which endpoint of the catalog: public (default), internal or admin.",
    "cacert": "File with the authorities that certificates are checked with.",
}
"""The options, each with its help. ``--os-x-y`` is OS_X_Y in the environment."""

_BASIC = "http_basic"
_PLAIN = ("none", _BASIC)
_NEED_PASSWORD = ("password", "v3password")


class NotReached(errors.IngotError):
    """The API, Keystone or a cloud's description cannot be used; the message says what to do."""


class Door(NamedTuple):
    """Where the API is, and what each request needs.

    :param signing: adds credentials.
    :param verify: how certificates are checked, in the words of requests.
    """

    endpoint: str
    signing: auth.AuthBase | None = None
    verify: bool | str = True


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    group = parser.add_argument_group("API and credentials", "Each is also a variable of the environment: OS_ENDPOINT.")
    for name, explained in _OPTIONS.items():
        group.add_argument(f"--os-{name}", metavar="VALUE", help=explained or None, default=_read_variable(name))
    group.add_argument("--insecure", action="store_true", help="Do not check certificates.")


def _read_variable(name: str) -> str | None:
    return os.environ.get(f"OS_{name.upper().replace('-', '_')}") or None


def open_door(given: argparse.Namespace) -> Door:
    """Return how the API is reached.

    :param given: the options.
    :raises NotReached: something is missing or wrong.
    """
    verify: bool | str = False if given.insecure else given.os_cacert or True
    if given.os_cloud:
        return _open_cloud(given.os_cloud, given.os_endpoint)
    kind = given.os_auth_type or ("password" if given.os_auth_url else _BASIC if given.os_username else "none")
    if kind in _PLAIN:
        basic = auth.HTTPBasicAuth(given.os_username or "", given.os_password or "") if kind == _BASIC else None
        return Door(_trim(given.os_endpoint or DEFAULT_ENDPOINT), basic, verify)
    if kind in _NEED_PASSWORD and not given.os_password:
        raise NotReached("Keystone asks for a password: set OS_PASSWORD.")
    try:
        loader: Any = loading.get_plugin_loader(kind)
        values = dict(_list_values(given, [option.dest for option in loader.get_options()]))
        known = session.Session(auth=loader.load_from_options(**values), verify=verify)
        where: Any = {"interface": given.os_interface or "public", "region_name": given.os_region_name}
        found = given.os_endpoint or known.get_endpoint(service_type="baremetal", **where)
        return _open_with(known, found)
    except exceptions.ClientException as exc:
        raise NotReached(f"Keystone cannot be used: {exc}") from exc


def _list_values(given: argparse.Namespace, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what a plug-in takes that the options or the environment have."""
    for name in names:
        if value := getattr(given, f"os_{name}", None) or _read_variable(name):
            yield name, value


def _open_cloud(name: str, endpoint: str | None) -> Door:
    try:
        # Not a dependency: most have no clouds.yaml, and it takes a second to load.
        config, failures = map(importlib.import_module, ("openstack.config", "openstack.exceptions"))
    except ImportError:
        raise NotReached(
            f"Cloud {name} is described in clouds.yaml, which openstacksdk reads: pip install openstacksdk. Or set "
            "OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME or OS_SYSTEM_SCOPE."
        ) from None
    try:
        region = config.OpenStackConfig().get_one(cloud=name)
        return _open_with(region.get_session(), endpoint or region.get_session_endpoint("baremetal"))
    except (failures.SDKException, exceptions.ClientException) as exc:
        raise NotReached(f"Cloud {name} cannot be used: {exc}") from exc


def _open_with(known: "session.Session", endpoint: str | None) -> Door:
    if endpoint is None:
        raise NotReached("The catalog of Keystone has no endpoint of type baremetal: set OS_ENDPOINT.")
    verify = known.verify if known.verify is not None else True
    return Door(_trim(endpoint), _TokenAuth(known), verify)


def _trim(endpoint: str) -> str:
    return endpoint.rstrip("/").removesuffix("/v1")


class _TokenAuth(auth.AuthBase):
    """Gives each request a token, and a new one to a request whose token was refused."""

    def __init__(self, known: "session.Session") -> None:
        self._known = known

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        self._sign(request)
        request.hooks["response"].append(self._repeat)
        return request

    def _sign(self, request: requests.PreparedRequest) -> None:
        try:
            request.headers.update(self._known.get_auth_headers() or {})
        except exceptions.ClientException as exc:
            raise NotReached(f"Keystone gives no token: {exc}") from exc

    def _repeat(self, answer: requests.Response, **options: Any) -> requests.Response:
        if answer.status_code != requests.codes.unauthorized or not self._known.invalidate():
            return answer
        answer.close()
        again = answer.request.copy()
        again.hooks["response"] = []
        self._sign(again)
        return answer.connection.send(again, **options)
