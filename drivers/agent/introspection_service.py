"""The service that inspects machines in Ingot's place, by the API of ironic-inspector: start, ask, collect, abort.

A request ends in time, and an answer has a limit. To be called from a thread that may wait.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import orjson
import requests
from oslo_config import cfg

from ingot.common import errors, fetching, later, masking
from ingot.common.json_types import Json

if TYPE_CHECKING:
    from keystoneauth1 import adapter, exceptions, loading
else:
    exceptions = later.Module("keystoneauth1.exceptions")
    loading = later.Module("keystoneauth1.loading")

_GROUP = "inspector"
_VERSION = {"X-OpenStack-Ironic-Inspector-API-Version": "1.17"}
"""The first with data as the ramdisk sent it."""

_LONGEST = 60  # seconds that a request may take where no timeout is configured
_LONGEST_REASON = 2000

_ABORTS = 3
"""How often it is asked to abort: it refuses while it works on the node."""

_NOT_STORED = "store_data"
"""In the answer of a service that keeps no data: the option by which it would."""

_What = TypeVar("_What")


class Refused(errors.StepFailed):
    """The service answers, and does not do what it is asked for."""


class Away(errors.StepFailed):
    """The service, or Keystone, does not answer."""


class Progress(NamedTuple):
    """How far an inspection is.

    :param error: why it has failed; empty if it has not.
    """

    finished: bool
    error: str


class Service:
    """The service that [inspector] names.

    :raises Invalid: none is named.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        if "auth_type" not in conf.inspector or not (conf.inspector.auth_type or conf.inspector.auth_section):
            raise errors.Invalid(
                field="inspect_interface",
                value="inspector",
                allowed="Its service is not configured: set [inspector] auth_type (none or http_basic, with "
                "endpoint_override, for one without Keystone).",
            )

    @property
    def longest(self) -> float:
        """Seconds that a request may take."""
        return float(self._conf.inspector.timeout or _LONGEST)

    def find_callback(self) -> str:
        """Return the URL to which agents send what they find.

        :raises StepFailed: Keystone knows no endpoint, or does not answer.
        """
        given = self._conf.inspector.callback_endpoint_override
        return f"{_strip(given) if given else self._call(_find_endpoint)}/v1/continue"

    def start(self, node: str, manages_boot: bool) -> None:
        """Have a node inspected; again from the beginning if it is being inspected.

        :param manages_boot: whether the service boots the machine and switches it off.
        :raises StepFailed: it refuses, or does not answer.
        """
        self._ask("POST", f"introspection/{node}?manage_boot={manages_boot}")

    def progress(self, node: str) -> Progress:
        """
        :raises StepFailed: as :meth:`start`.
        """
        found = _parse(self._ask("GET", f"introspection/{node}"))
        return Progress(bool(found.get("finished")), str(found.get("error") or "")[:_LONGEST_REASON])

    def data(self, node: str) -> Json:
        """Return what the ramdisk has sent; an empty object where the service keeps nothing.

        :raises StepFailed: as :meth:`start`.
        """
        try:
            return _parse(self._ask("GET", f"introspection/{node}/data/unprocessed"))
        except Refused as exc:
            if _NOT_STORED not in exc.message:
                raise
            return {}

    def abort(self, node: str) -> None:
        """
        :raises StepFailed: as :meth:`start`.
        """
        for number in range(_ABORTS):
            try:
                self._ask("POST", f"introspection/{node}/abort")
            except Refused:
                if number == _ABORTS - 1:
                    raise
                time.sleep(1.0)
            else:
                return

    def _ask(self, method: str, path: str) -> bytes:
        def ask(client: "adapter.Adapter") -> bytes:
            url = f"{_find_endpoint(client)}/v1/{path}"
            answer: requests.Response = client.request(url, method, headers=_VERSION, raise_exc=False, stream=True)
            with answer:
                content = _read(answer, self._conf.api.max_json_body_size_inspection)
            if answer.status_code >= requests.codes.bad:
                raise _read_refusal(answer.status_code, content)
            return content

        return self._call(ask)

    def _call(self, ask: "Callable[[adapter.Adapter], _What]") -> _What:
        conf = self._conf
        try:
            login = loading.load_auth_from_conf_options(conf, _GROUP)
            own = {"auth": login, "session": fetching.open_session()}
            session = loading.load_session_from_conf_options(conf, _GROUP, **own)
            with fetching.limit(self.longest):
                return ask(loading.load_adapter_from_conf_options(conf, _GROUP, session=session))
        except (exceptions.ConnectionError, exceptions.DiscoveryFailure, exceptions.HttpServerError) as exc:
            raise Away(f"the inspection service does not answer: {_shorten(str(exc))}") from exc
        except (requests.RequestException, OSError) as exc:
            raise Away(f"the inspection service does not answer: {type(exc).__name__}") from exc
        except exceptions.ClientException as exc:
            raise Refused(
                f"the inspection service cannot be asked, check the options of [inspector]: {_shorten(str(exc))}"
            ) from exc


def _shorten(text: str) -> str:
    return masking.mask_text(text)[:_LONGEST_REASON]


def _find_endpoint(client: "adapter.Adapter") -> str:
    endpoint = client.get_endpoint()
    if not endpoint:
        raise Refused(
            "Keystone knows no endpoint of the inspection service; [inspector] service_type, region_name and "
            "valid_interfaces say which"
        )
    return _strip(endpoint)


def _strip(endpoint: str) -> str:
    return endpoint.rstrip("/").removesuffix("/v1")


def _read(answer: requests.Response, most: int) -> bytes:
    """
    :param most: KiB, as agents may send here.
    """
    content = bytearray()
    for chunk in answer.iter_content(64 * 1024):
        content += chunk
        if len(content) > most * 1024:
            raise Refused(
                f"the inspection service sends more than {most} KiB ([api] max_json_body_size_inspection): data of "
                "machines have their logs in them"
            )
    return bytes(content)


def _parse(content: bytes) -> Json:
    try:
        found = orjson.loads(content)
        orjson.dumps(found)  # what is nested too deeply could not be kept
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, dict):
        raise Refused(
            "what answers at the address of the inspection service is none: it sends no JSON object that can be kept"
        )
    return found


def _read_refusal(status: int, content: bytes) -> errors.StepFailed:
    try:
        reason = str(orjson.loads(content)["error"]["message"])
    except (ValueError, TypeError, KeyError):
        reason = ""
    text = f"the inspection service answers HTTP {status}{reason and ': '}{_shorten(reason)}"
    return Away(text) if status >= requests.codes.server_error else Refused(text)
