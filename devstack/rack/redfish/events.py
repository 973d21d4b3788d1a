"""Events: subscriptions, and what happens to machines sent to their destinations."""

import asyncio
import itertools
import logging
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import requests

from ingot.rack.http_server import Response
from ingot.rack.loop import Site, in_thread
from ingot.rack.redfish.messages import RedfishError
from ingot.rack.redfish.routing import ROOT, Call, Document, Route, collection, link, of_type, resource

if TYPE_CHECKING:
    from ingot.rack.redfish.service import Member, Service

LOG = logging.getLogger(__name__)

SERVICE = f"{ROOT}/EventService"
SUBSCRIPTIONS = f"{SERVICE}/Subscriptions"
TYPES = ("StatusChange", "ResourceUpdated", "ResourceAdded", "ResourceRemoved", "Alert")
MOST = 20
_SEND_TIMEOUT = 5.0
_KEPT = ("Destination", "Protocol", "Context", "EventTypes", "HttpHeaders", "SubscriptionType", "EventFormatType")
_TEST = f"{SERVICE}/Actions/EventService.SubmitTestEvent"
_TEST_PROPERTIES = (
    "EventId",
    "EventTimestamp",
    "EventType",
    "Message",
    "MessageArgs",
    "MessageId",
    "OriginOfCondition",
    "Severity",
    "EventGroupId",
)


class Subscriptions:
    """Who gets the events of one service."""

    def __init__(self, service: "Service") -> None:
        self.all: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count(1)
        self._sending: set[asyncio.Task[None]] = set()
        for member in service.members:
            member.board.on_event.append(partial(self._note, member))

    def _note(self, member: "Member", what: str, state: str) -> None:
        """Send that something of a machine has another state."""
        event = {
            "EventType": "StatusChange",
            "Message": f"{what} is {state}",
            "MessageArgs": [what, state],
            "MessageId": "ResourceEvent.1.3.ResourceChanged",
            "OriginOfCondition": link(member.system),
            "Severity": "OK",
        }
        self.send(member.board.machine.site, event)

    def add(self, subscription: dict[str, Any]) -> str:
        if len(self.all) >= MOST:
            raise RedfishError("EventSubscriptionLimitExceeded")
        name = str(next(self._numbers))
        self.all[name] = subscription
        return name

    def send(self, site: Site, event: dict[str, Any]) -> None:
        """Send an event to all destinations that have its type, without waiting for them."""
        for subscription in self.all.values():
            types = subscription.get("EventTypes")
            if not types or event.get("EventType") in types:
                work = asyncio.ensure_future(in_thread(site.quick, _send, subscription, event))
                self._sending.add(work)
                work.add_done_callback(self._sending.discard)


def _send(subscription: dict[str, Any], event: dict[str, Any]) -> None:
    headers = {name: value for entry in subscription.get("HttpHeaders") or () for name, value in entry.items()}
    body = {
        "@odata.type": "#Event.v1_9_0.Event",
        "Id": "1",
        "Name": "Event",
        "Context": subscription.get("Context"),
        "Events": [{"EventTimestamp": datetime.now(UTC).isoformat(), "MemberId": "0", **event}],
    }
    try:
        requests.post(subscription["Destination"], json=body, headers=headers, timeout=_SEND_TIMEOUT, verify=False)  # noqa: S501 - as BMCs do that were given no certificate
    except (requests.RequestException, ValueError) as error:
        LOG.info("event for %s: %s", subscription["Destination"], error)


def _service(call: Call) -> Document:
    return resource(
        SERVICE,
        "EventService.v1_10_1.EventService",
        "Event Service",
        ServiceEnabled=True,
        Status={"State": "Enabled", "Health": "OK"},
        DeliveryRetryAttempts=1,
        DeliveryRetryIntervalSeconds=30,
        EventTypesForSubscription=TYPES,
        Subscriptions=link(SUBSCRIPTIONS),
        Actions={"#EventService.SubmitTestEvent": {"target": _TEST}},
    )


def _list(call: Call) -> Document:
    found = call.service.subscriptions.all
    return collection(SUBSCRIPTIONS, "EventDestination", [f"{SUBSCRIPTIONS}/{name}" for name in found])


def _show(call: Call) -> Document:
    found = call.service.subscriptions.all.get(call.ids["subscription"])
    if found is None:
        raise call.missing()
    # Headers hold secrets, and are never shown.
    shown = {"HttpHeaders": []} | {name: value for name, value in found.items() if name != "HttpHeaders"}
    return resource(call.path, "EventDestination.v1_14_1.EventDestination", "Event Subscription", **shown)


def _create(call: Call) -> Response:
    body = call.body()
    for name in ("Destination", "Protocol"):
        if name not in body:
            raise RedfishError("PropertyMissing", name, related=(f"#/{name}",))
    for name in body:
        if name not in _KEPT:
            raise RedfishError("PropertyUnknown", name, related=(f"#/{name}",))
    of_type(body, "Destination", str)
    for name in body.get("EventTypes", ()):
        if name not in TYPES:
            raise RedfishError("PropertyValueNotInList", name, "EventTypes", related=("#/EventTypes",))
    name = call.service.subscriptions.add(body)
    return Response(status=201, headers={"Location": f"{SUBSCRIPTIONS}/{name}"}, raw=b"")


def _delete(call: Call) -> None:
    if call.service.subscriptions.all.pop(call.ids["subscription"], None) is None:
        raise call.missing()


def _test(call: Call) -> None:
    body = call.parameters("SubmitTestEvent", (), _TEST_PROPERTIES)
    call.service.subscriptions.send(call.service.members[0].board.machine.site, body)


ROUTES = (
    Route("GET", "/EventService", _service),
    Route("POST", "/EventService/Actions/EventService.SubmitTestEvent", _test),
    Route("GET", "/EventService/Subscriptions", _list),
    Route("POST", "/EventService/Subscriptions", _create),
    Route("GET", "/EventService/Subscriptions/{subscription}", _show),
    Route("DELETE", "/EventService/Subscriptions/{subscription}", _delete),
)
