"""Redfish messages: the registry that the faces offer, and errors with extended information made from it."""

from dataclasses import dataclass
from typing import Any

from ingot.rack.http_server import Response

VERSION = "1.18.1"
PREFIX = "Base.1.18"


@dataclass(frozen=True)
class Message:
    """A message: %1, %2, ... in its text are its arguments. ``status`` is of the answer that carries it."""

    text: str
    status: int = 400
    severity: str = "Warning"
    resolution: str = "Correct the request and send it again."
    registry: str = PREFIX


_SERVER = "Send the request again later; if it keeps failing, restart the service."

BASE = {
    "Success": Message("The request was successful.", 200, "OK", "None."),
    "Created": Message("A resource was made.", 201, "OK", "None."),
    "GeneralError": Message("%1", 500, "Critical", _SERVER),
    "InternalError": Message("The service failed inside.", 500, "Critical", _SERVER),
    "ServiceTemporarilyUnavailable": Message("The service is busy; it can be asked again in %1 seconds.", 503,
                                             "Critical", "Wait, then send the request again."),
    "NoValidSession": Message("The request has neither a login nor a valid session.", 401, "Critical",
                              "Open a session and send the request with its token."),
    "SessionLimitExceeded": Message("There are as many sessions as the service can have.", 503, "Critical",
                                    "End other sessions first."),
    "EventSubscriptionLimitExceeded": Message("There are as many subscriptions as the service can have.", 503,
                                              "Critical", "Delete other subscriptions first."),
    "ResourceMissingAtURI": Message("There is no resource at %1.", 404, "Critical"),
    "OperationNotAllowed": Message("The resource does not have this method.", 405, "Critical"),
    "MalformedJSON": Message("The body is not the JSON of an object.", 400, "Critical"),
    "MissingOrMalformedPart": Message("The request lacks a body.", 400, "Critical"),
    "PropertyUnknown": Message("The resource does not have the property %1."),
    "PropertyNotWritable": Message("The property %1 cannot be changed."),
    "PropertyMissing": Message("The property %1 is required."),
    "PropertyValueTypeError": Message("The value %1 of the property %2 has the wrong type."),
    "PropertyValueNotInList": Message("The value %1 of the property %2 is not one that it can have."),
    "PropertyValueOutOfRange": Message("The value %1 of the property %2 is out of range."),
    "ActionNotSupported": Message("The resource does not have the action %1.", 400, "Critical"),
    "ActionParameterMissing": Message("The action %1 requires the parameter %2.", 400, "Critical"),
    "ActionParameterUnknown": Message("The action %1 does not have the parameter %2."),
    "ActionParameterNotSupported": Message("The action %2 does not support the parameter %1."),
    "ActionParameterValueNotInList": Message("The parameter %2 of the action %3 cannot have the value %1."),
    "PreconditionFailed": Message("The resource is not as the ETag of the request says.", 412, "Critical",
                                  "Read the resource again."),
    "ResourceInUse": Message("The resource is in use.", 409),
    "ResourceInStandby": Message("The system has no power, so this cannot be done.", 409, "Critical",
                                 "Power the system on first."),
    "ResourceExhaustion": Message("The resource %1 has no room for this.", 400, "Critical"),
    "OperationFailed": Message("A part of the request failed: %1", 500, "Warning", _SERVER),
    "InvalidOperationForSystemState": Message("The system is in POST: the operation is refused for now.", 400,
                                              registry="iLO.2.24"),
    "SYS518": Message("The controller is not ready yet.", 503, "Critical", registry="IDRAC.2.8"),
    "VRM0009": Message("There is no image in the virtual drive.", 400, registry="IDRAC.2.8"),
    "VRM0012": Message("The virtual drive has an image already.", 500, registry="IDRAC.2.8"),
    "ApplyTimeNotSupported": Message("The time %1 to apply a change is not one that the resource has.", 400),
}  # fmt: skip


class RedfishError(Exception):
    """A request that is answered with an error.

    :param related: properties of the body that it is about, as JSON pointers.
    :param code: an HTTP status other than the message's.
    """

    def __init__(
        self, name: str, *args: object, related: tuple[str, ...] = (), code: int | None = None, **headers: str
    ) -> None:
        super().__init__(render(name, args))
        self.name = name
        self.arguments = [str(arg) for arg in args]
        self.related = related
        self.status = code or BASE[name].status
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}

    def response(self) -> Response:
        """Return the answer: the error with its extended information."""
        info = build_message(self.name, *self.arguments)
        if self.related:
            info["RelatedProperties"] = list(self.related)
        error = {"code": info["MessageId"], "message": str(self), "@Message.ExtendedInfo": [info]}
        return Response({"error": error}, self.status, dict(self.headers))


def render(name: str, args: tuple[object, ...]) -> str:
    """Return a message's text with its arguments."""
    text = BASE[name].text
    for number, arg in enumerate(args, 1):
        text = text.replace(f"%{number}", str(arg))
    return text


def build_message(name: str, *args: object) -> dict[str, Any]:
    """Return a message as resources show it."""
    message = BASE[name]
    return {
        "@odata.type": "#Message.v1_1_2.Message",
        "MessageId": f"{message.registry}.{name}",
        "Message": render(name, args),
        "MessageArgs": [str(arg) for arg in args],
        "Severity": message.severity,
        "MessageSeverity": message.severity,
        "Resolution": message.resolution,
    }


def registry() -> dict[str, Any]:
    """Return the registry of these messages."""
    return {
        "@odata.type": "#MessageRegistry.v1_6_2.MessageRegistry",
        "Id": f"Base.{VERSION}",
        "Name": "Messages of the virtual rack",
        "Language": "en",
        "RegistryPrefix": "Base",
        "RegistryVersion": VERSION,
        "OwningEntity": "Ingot",
        "Messages": {name: _entry(message) for name, message in BASE.items()},
    }


def _entry(message: Message) -> dict[str, Any]:
    count = sum(f"%{number}" in message.text for number in range(1, 5))
    return {
        "Description": message.text,
        "Message": message.text,
        "Severity": message.severity,
        "MessageSeverity": message.severity,
        "NumberOfArgs": count,
        "ParamTypes": ["string"] * count,
        "Resolution": message.resolution,
    }
