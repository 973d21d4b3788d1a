"""Operations on machines through sushy, each of which ends in time: all use of sushy is here.

sushy has the resources of Redfish as classes, and sends requests by an object that it can be given. Here that is
:class:`_Connector`, which waits on the loop of :mod:`ingot.drivers.interfaces.bmc_loop` instead of in a thread. What
sushy's own would do, sessions, retries and entity tags, is in this package. Other modules get a :class:`Machine` and
call it; they do not import sushy. It takes 0.1 s to load, so that happens when the first BMC is called.
"""

import asyncio
import atexit
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import TYPE_CHECKING, Any, TypeVar

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, later, metrics
from ingot.common.json_types import Json
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import fields, session
from ingot.drivers.redfish.address import Address, read_address
from ingot.drivers.redfish.http import LARGEST, KeptDocument, Response

if TYPE_CHECKING:
    import sushy
    from sushy import exceptions as sushy_errors
else:
    sushy = later.Module("sushy")
    sushy_errors = later.Module("sushy.exceptions")

LOG = log.getLogger(__name__)

# It warns of whatever a BMC leaves out, at each reading; what matters is in the errors that it raises.
logging.getLogger("sushy").setLevel(logging.ERROR)

_SECONDS = metrics.BMC_CALL_SECONDS.labels("redfish")

_MOST_PAGES = 20  # of a collection

Answer = TypeVar("Answer")

Resource = Any
"""A resource of sushy's, which has no types."""

_GARBLED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What sushy runs into when a document is not what it takes it for."""


class _Connector:
    """Sends sushy's requests, inside an exchange of the loop of BMCs."""

    def __init__(self, operation: session.Operation) -> None:
        self._operation = operation
        self.repeats: bool | None = None
        self.kept: dict[str, Json] = {}  # documents that are not asked for again

    def request(self, method: str, path: str, data: object, headers: Mapping[str, str] | None,
                repeatable: bool | None = None, largest: int = LARGEST) -> Response:  # fmt: skip
        repeatable = self.repeats if repeatable is None else repeatable
        response: Response = bmc_loop.wait(self._operation.request(method, path, data, headers, repeatable, largest))
        try:
            sushy_errors.raise_for_response(method, path, response)
        except sushy_errors.HTTPError as exc:
            exc.answered = (self._operation.doing, response)
            raise
        return response

    # What sushy calls. It is never allowed to block until a task has ended, nor to choose a timeout.

    def get(self, path: str = "", data: object = None, headers: Mapping[str, str] | None = None,
            **_options: object) -> Response:  # fmt: skip
        if path in self.kept:
            return KeptDocument(self.kept[path])
        response = self.request("GET", path, data, headers)
        self.read(response)
        return response

    def read(self, response: Response) -> Json:
        """Return the document of a resource.

        :raises HardwareError: the answer has none.
        """
        try:
            document = response.json()
        except ValueError as exc:
            raise self.refuse(f"is not JSON ({exc})") from None
        if not isinstance(document, dict):
            raise self.refuse("is no JSON object")
        return document

    def refuse(self, what: str) -> errors.HardwareError:
        """Return the error that the last answer is not Redfish."""
        bmc = f"BMC {self._operation.session.address.where}"
        return errors.HardwareError(what=f"Calling {bmc}", reason=f"the answer to {self._operation.doing} {what}")

    def post(self, path: str = "", data: object = None, headers: Mapping[str, str] | None = None,
             **_options: object) -> Response:  # fmt: skip
        return self.request("POST", path, {} if data is None else data, headers)

    def put(self, path: str = "", data: object = None, headers: Mapping[str, str] | None = None,
            **_options: object) -> Response:  # fmt: skip
        return self.request("PUT", path, data, headers)

    def delete(self, path: str = "", data: object = None, headers: Mapping[str, str] | None = None,
               **_options: object) -> Response:  # fmt: skip
        return self.request("DELETE", path, data, headers)

    def patch(self, path: str = "", data: object = None, headers: Mapping[str, str] | None = None,
              etag: str | None = None, **_options: object) -> Response:  # fmt: skip
        """Change a resource; BMCs differ in which form of an entity tag they take, and in whether they take any."""
        forms = [etag, etag.removeprefix("W/"), None] if etag else [None]
        for form in dict.fromkeys(forms):
            last = form is None
            try:
                tag = {"If-Match": form} if form is not None else {}
                return self.request("PATCH", path, data, {**(headers or {}), **tag})
            except sushy_errors.HTTPError as exc:
                if last or exc.status_code not in (412, 428):
                    raise
        raise AssertionError("the last form is tried always")


class _NoLogin:
    """What sushy logs in with: the session has done that already."""

    def set_context(self, root_resource: object, connector: object) -> None:
        """Do nothing, like the others."""

    def authenticate(self) -> None:
        pass

    close = authenticate


class Machine:
    """A machine behind a BMC during one operation: its resources, read when they are asked for.

    :ivar address: where it is.
    """

    def __init__(self, address: Address, operation: session.Operation) -> None:
        self.address = address
        self._operation = operation
        self._connector = _Connector(operation)
        self._resources: dict[str, Resource] = {}

    def _find(self, name: str, read: Callable[[], Resource]) -> Resource:
        if name not in self._resources:
            self._resources[name] = read()
        return self._resources[name]

    @property
    def service(self) -> Resource:
        """sushy's service root."""
        return self._find("service", self._read_service)

    def _read_service(self) -> Resource:
        bmc_loop.wait(self._operation.prepare())
        self._connector.kept[self.address.root] = self._operation.session.root
        return sushy.Sushy(
            self.address.where, auth=_NoLogin(), connector=self._connector, root_prefix=self.address.root
        )

    @property
    def system(self) -> Resource:
        """sushy's ``System``."""
        return self._find("system", lambda: self.service.get_system(self.system_path))

    def read_again(self) -> Resource:
        """Return :attr:`system` as it is now."""
        self._resources.pop("system", None)
        return self.system

    @property
    def system_path(self) -> str:
        """Path of the machine's resource.

        :raises HardwareError: the node does not say which machine it is, and the BMC has several, or none.
        """
        known = self._operation.session
        if self.address.system is not None:
            return self.address.system
        if known.system is None:
            members = self.service.get_system_collection().members_identities
            if len(members) != 1:
                shown = ", ".join(members[:10]) or "none"
                raise errors.HardwareError(
                    what=f"Finding the machine of BMC {self.address.where}",
                    reason=f"it has {len(members)} ({shown}); give the node driver_info redfish_system_id",
                )
            known.system = members[0]
        return str(known.system)

    @property
    def manager(self) -> Resource:
        """sushy's ``Manager`` of the machine, the first if it has several.

        :raises HardwareError: it has none.
        """
        managers = self._find("managers", lambda: self.system.managers)
        if not managers:
            raise errors.HardwareError(what=self.describe(self.system_path), reason="it has no manager")
        return managers[0]

    @contextlib.contextmanager
    def repeating(self) -> Iterator[None]:
        """Have requests inside, actions too, sent again where the BMC fails at them: they may be done twice."""
        self._connector.repeats = True
        try:
            yield
        finally:
            self._connector.repeats = None

    @property
    def refusals(self) -> type[Exception]:
        """The exception that tells that the BMC answered a request with an error."""
        refusal: type[Exception] = sushy_errors.HTTPError
        return refusal

    def constant(self, kind: str, value: str) -> Resource:
        """Return a value as sushy wants it: ``constant("ResetType", "On")``."""
        return getattr(sushy, kind)(value)

    def read(self, path: str) -> Json:
        """Return the document of a resource.

        :raises HardwareError: it has none.
        """
        return self._connector.read(self.fetch(path))

    def read_linked(self, document: Json, *names: str) -> Json:
        """Return the document that an object inside of a document links to; an empty one where there is no link."""
        path = fields.link(document, *names)
        return self.read(path) if path else {}

    def fetch(self, path: str) -> Response:
        """Return the answer to a request for a resource, whatever it is."""
        return self._connector.request("GET", path, None, None)

    def read_etag(self, path: str) -> str | None:
        """Return the entity tag of a resource; None if the BMC has none."""
        tag: str | None = self.fetch(path).headers.get("ETag")
        return tag

    def read_optional(self, path: str, largest: int = LARGEST) -> Json:
        """Return the document of a resource that the work can do without; an empty one if the BMC refuses it.

        :param largest: bytes that it may have.
        """
        try:
            response = self._connector.request("GET", path, None, None, repeatable=False, largest=largest)
        except sushy_errors.HTTPError as exc:
            LOG.info("%s is left out: %s", self.describe(path), exc)
            return {}
        return response.read_object()

    def read_members(self, path: str) -> list[Json]:
        """Return the documents of a collection's members; what the BMC refuses is left out."""
        found = []
        for member in self.list_members(path):
            place = fields.link(member)
            if place is not None:
                found.append(member if len(member) > 1 else self.read_optional(place))
        return [member for member in found if member]

    def list_members(self, path: str) -> list[Json]:
        """Return what a collection shows of its members: links, or their documents."""
        found, page = [], self.read_optional(path)
        for _ in range(_MOST_PAGES):
            found += fields.parts(page, "Members")
            following = fields.next_page(page)
            if following is None:
                break
            page = self.read_optional(following)
        return found

    def act(self, path: str, document: Json, action: str, data: Json, repeatable: bool = False) -> Response:
        """Have a resource do something.

        :param document: the resource's, which says where its actions are.
        :param repeatable: as for :meth:`post`.
        :raises HardwareError: it has no such action.
        """
        target = fields.path(fields.part(document, "Actions", action), "target")
        if target is None:
            raise errors.HardwareError(what=self.describe(path), reason=f"it has no action {action}")
        return self.post(target, data, repeatable)

    def post(self, path: str, data: Json, repeatable: bool = False) -> Response:
        """
        :param repeatable: whether the action may be done twice; then it is sent again where the BMC fails at it.
        """
        return self._connector.request("POST", path, data, None, repeatable)

    def patch(self, path: str, data: Json, etag: str | None = None) -> Response:
        return self._connector.patch(path, data, etag=etag)

    def delete(self, path: str, data: Json | None = None) -> Response:
        return self._connector.delete(path, data)

    def describe(self, path: str) -> str:
        """Return how messages name a resource."""
        return f"{path} of BMC {self.address.where}"


def _choose_limits(conf: cfg.ConfigOpts, factor: float) -> session.Limits:
    options = conf.redfish
    return session.Limits(
        total=options.read_timeout * factor,
        connect=options.connect_timeout,
        attempts=options.connection_attempts,
        longest_pause=options.connection_retry_interval,
    )


async def call_async(address: Address, conf: cfg.ConfigOpts, work: Callable[[Machine], Answer],
                     factor: float = 1) -> Answer:  # fmt: skip
    """Do the same as :func:`call`, on the loop of BMCs: for reading many machines at once."""
    limits = _choose_limits(conf, factor)
    doing = "waiting for other operations on it"
    try:
        with _SECONDS.time():
            async with (
                asyncio.timeout(limits.total),
                session.open_operation(address, limits, conf.redfish.connection_cache_size) as operation,
            ):
                with _translate_errors(address, operation):
                    try:
                        return await bmc_loop.run_in_loop(lambda: work(Machine(address, operation)))
                    finally:
                        doing = operation.doing
    except TimeoutError:
        raise errors.HardwareUnreachable(
            what=f"BMC {address.where}",
            reason=f"not done within {limits.total:g} s ([redfish] read_timeout), at last: {doing}; is it unresponsive "
            "or busy?",
        ) from None


def call(task: Task, work: Callable[[Machine], Answer], factor: float = 1) -> Answer:
    """Do ``work(machine)`` with a task's machine and return its result.

    :param factor: how many times ``[redfish] read_timeout`` it may take, for what needs many requests.
    :raises HardwareUnreachable: the BMC does not answer in time, or stays busy; the message has its address.
    :raises HardwareError: it refuses the log-in or a request.
    """
    address = read_address(task.node.driver_info, task.conf)
    with task.circuit_breakers.observe_call(task.node.uuid, address.where, task.node.driver):
        return submit(address, task.conf, work, factor).result()


def submit(address: Address, conf: cfg.ConfigOpts, work: Callable[[Machine], Answer],
           factor: float = 1) -> "futures.Future[Answer]":  # fmt: skip
    """Begin an operation; return at once."""
    _log_out_at_exit()
    return bmc_loop.submit(call_async(address, conf, work, factor))


_registered: list[bool] = []


def _log_out_at_exit() -> None:
    if not _registered:
        _registered.append(True)
        atexit.register(log_out)


def log_out() -> None:
    """End the sessions with all BMCs."""
    with contextlib.suppress(futures.TimeoutError):
        bmc_loop.submit(session.close_all()).result(10)


@contextlib.contextmanager
def _translate_errors(address: Address, operation: session.Operation) -> Iterator[None]:
    """Turn what sushy raises into errors that name BMC, request and what the BMC has said."""
    bmc = f"BMC {address.where}"
    try:
        yield
    except errors.IngotError:
        raise
    except sushy_errors.HTTPError as exc:
        doing, response = exc.answered
        reason = f"{doing} {operation.describe(response)}"
        if response.status_code == 401:
            reason += "; check driver_info redfish_username and redfish_password"
        kind = errors.HardwareUnreachable if response.status_code in (429, 503) else errors.HardwareError
        raise kind(what=f"Calling {bmc}", reason=reason) from None
    except sushy_errors.SushyError as exc:
        raise errors.HardwareError(what=f"Calling {bmc}", reason=f"{exc} (at last: {operation.doing})") from None
    except _GARBLED as exc:
        LOG.debug("%s: what it sent could not be used", bmc, exc_info=True)
        reason = f"its answer is not Redfish ({exc!r:.200}), at last that to {operation.doing}"
        raise errors.HardwareError(what=f"Calling {bmc}", reason=reason) from None
