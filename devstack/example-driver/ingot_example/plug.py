"""Calls a smart plug: one JSON document over HTTP, ``{"on": bool, "watts": number, "display": text}``."""

from typing import NamedTuple
from urllib.parse import urlsplit

import requests

from ingot.common import errors
from ingot.common.json_types import Json

PROPERTIES: dict[str, str] = {
    "plug_url": "Address of the plug's document, http or https. Required.",
    "plug_token": "Token that the plug expects in the header Authorization. Default: none.",
}
"""What a node's driver_info says about its plug. A key with "token" in its name is never shown or logged by Ingot."""


class Plug(NamedTuple):
    """A plug and how to get in.

    :param timeout: seconds that it has to answer.
    """

    url: str
    token: str | None
    timeout: float

    def __repr__(self) -> str:
        return f"<plug {self.url}>"  # a named tuple would show the token

    def read(self) -> Json:
        """Return the document.

        :raises HardwareUnreachable: the plug does not answer.
        :raises HardwareError: it refuses, or answers with something else.
        """
        return self._call("GET")

    def write(self, **values: object) -> None:
        """Change the named values of the document; errors as in :meth:`read`."""
        self._call("PUT", values)

    def _call(self, method: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with requests.Session() as session:
            session.trust_env = False  # proxies of the conductor's environment do not lead to plugs
            try:
                answer = session.request(method, self.url, headers=headers, json=body, timeout=self.timeout)
                document = answer.json() if answer.ok else None
            except requests.JSONDecodeError as exc:
                raise errors.HardwareError(what=f"{method} {self.url}", reason="the answer is not JSON") from exc
            except requests.RequestException as exc:
                raise errors.HardwareUnreachable(
                    what=f"Plug {self.url}", reason=f"{type(exc).__name__}; check driver_info plug_url and the network"
                ) from exc
        if not isinstance(document, dict):
            raise errors.HardwareError(
                what=f"{method} {self.url}",
                reason=f"HTTP {answer.status_code} without a document; check driver_info plug_url and plug_token",
            )
        return document


def read_plug(driver_info: Json, timeout: float) -> Plug:
    """Return the plug that a node's ``driver_info`` names.

    :raises MissingParameter: there is no ``plug_url``.
    :raises Invalid: it is no address.
    """
    url = driver_info.get("plug_url")
    if not url:
        raise errors.MissingParameter(where="driver_info", names="plug_url (address of the machine's plug)")
    if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise errors.Invalid(field="driver_info.plug_url", value=url, allowed="An http or https address.")
    return Plug(url, driver_info.get("plug_token"), timeout)
