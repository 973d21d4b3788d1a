"""An image of Glance: what is known of it, and its content (drivers check images, api passes them on)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import requests
from oslo_config import cfg
from oslo_utils import uuidutils

from ingot.common import errors, fetching, later
from ingot.common.json_types import Json

if TYPE_CHECKING:
    from keystoneauth1 import adapter, exceptions, loading
else:
    exceptions = later.Module("keystoneauth1.exceptions")
    loading = later.Module("keystoneauth1.loading")

_GROUP = "glance"
_SCHEME = "glance://"
_LONGEST = 60  # seconds that an answer may take where no timeout is configured
_CONTENT = frozenset((200, 206, 416))
"""Statuses with which Glance answers a request for the content of an image that it has: 416 is about a range."""

_UNREADABLE = {
    401: "Glance takes no token of the user that [glance] names: check auth_type, username and the like there.",
    403: "The user that [glance] names may not read this image: share the image with it, or give it a role that may.",
    404: "Glance has no image with this id, or none that the user that [glance] names may see.",
}


def ident(source: object) -> str | None:
    """Return the id of an image that is given as a uuid or as ``glance://`` and a uuid; None if in another way."""
    found = str(source).removeprefix(_SCHEME)
    return found if str(source).startswith(_SCHEME) or uuidutils.is_uuid_like(found) else None


class Image:
    """An image of Glance.

    :param field: what names it, for messages.
    :param source: as it is named there; see :func:`ident`.
    :raises Invalid: no image can have this id, or Glance is not configured.
    """

    def __init__(self, conf: cfg.ConfigOpts, field: str, source: str) -> None:
        self._conf = conf
        self._field = field
        self._source = source
        self.ident = ident(source) or ""
        if not uuidutils.is_uuid_like(self.ident):
            raise self.refused_error("The id of an image of Glance is a uuid.")
        if _GROUP not in conf or not (conf.glance.auth_type or conf.glance.auth_section):
            raise self.refused_error(
                "It is the id of an image of Glance, which is not configured: set [glance] auth_type (none, with "
                "endpoint_override, for a Glance without Keystone), or give the URL of the image."
            )

    def refused_error(self, why: str) -> errors.Invalid:
        """Return the error for an image that cannot be used."""
        return errors.Invalid(field=self._field, value=self._source, allowed=why)

    def document(self) -> Json:
        """Return what Glance knows of it, in the words of its API.

        :raises Invalid: there is no such image, it may not be read, or [glance] cannot be used.
        :raises ImageServiceUnavailable: Glance, or Keystone, does not answer.
        """
        return self._parse(self._get(""))

    def is_shared_with(self, project: str) -> bool:
        """Return whether a project has accepted the image; ``document`` says whose it is."""
        answer = self._get(f"/members/{project}")
        if answer.status_code in (requests.codes.forbidden, requests.codes.not_found):
            return False
        return bool(self._parse(answer).get("status") == "accepted")

    def content(self, headers: Mapping[str, str]) -> requests.Response:
        """Return the beginning of an answer with the content, or the range that the headers name, to read and close.

        :raises IngotError: as :meth:`document`.
        """
        asked = {"Accept-Encoding": "identity", "Accept": "application/octet-stream", **headers}
        answer = self._get("/file", headers=asked, stream=True, log=False)
        if answer.status_code not in _CONTENT:
            answer.close()
            raise self._unreadable_error(answer)
        return answer

    def _get(self, path: str, **how: object) -> requests.Response:
        try:
            login = loading.load_auth_from_conf_options(self._conf, _GROUP)
            own = {"auth": login, "session": fetching.open_session()}
            session = loading.load_session_from_conf_options(self._conf, _GROUP, **own)
            client = loading.load_adapter_from_conf_options(self._conf, _GROUP, session=session)
            with fetching.limit(self._conf.glance.timeout or _LONGEST):
                return self._ask(client, path, **how)
        except (exceptions.ConnectionError, exceptions.DiscoveryFailure, exceptions.HttpServerError) as exc:
            raise self._unavailable_error(str(exc)) from exc
        except exceptions.ClientException as exc:
            raise self.refused_error(f"Glance cannot be asked for it, check the options of [glance]: {exc}") from exc

    def _ask(self, client: "adapter.Adapter", path: str, **how: object) -> requests.Response:
        endpoint = client.get_endpoint()
        if not endpoint:
            where = "[glance] region_name and valid_interfaces say which."
            raise self.refused_error(f"Keystone knows no endpoint of Glance; {where}")
        base = endpoint.rstrip("/").removesuffix("/v2")
        answer: requests.Response = client.get(f"{base}/v2/images/{self.ident}{path}", raise_exc=False, **how)
        return answer

    def _parse(self, answer: requests.Response) -> Json:
        if answer.status_code != requests.codes.ok:
            raise self._unreadable_error(answer)
        try:
            document: Json = answer.json()
            return document
        except requests.JSONDecodeError as exc:
            raise self._unavailable_error(f"what answers at {answer.url} is no Glance") from exc

    def _unreadable_error(self, answer: requests.Response) -> errors.IngotError:
        why = _UNREADABLE.get(answer.status_code)
        return self.refused_error(why) if why else self._unavailable_error(f"it answers HTTP {answer.status_code}")

    def _unavailable_error(self, reason: str) -> errors.ImageServiceUnavailable:
        return errors.ImageServiceUnavailable(field=self._field, image=self._source, reason=reason)
