"""Every error that Ingot tells apart, with its HTTP status (used by api, conductor, drivers, db, rpcapi).

A class exists only if it is caught somewhere or a client can tell it apart. ``code`` is the status the API answers,
``template`` the message; the keyword arguments fill it. An error crosses the bus as ``(class name, message)`` and comes
back as the same class (:func:`by_name`), so a client sees one message wherever it was raised.
"""

import contextlib
from collections.abc import Iterator, Sequence

from ingot.common import masking

_LONGEST = 2**17  # characters of a message; agents and BMCs send parts of some


class IngotError(Exception):
    """Base of all of Ingot's errors.

    :param message: the whole message; without it, ``template`` filled with the keyword arguments.
    """

    code = 500
    template = "An unexpected error occurred."

    def __init_subclass__(cls) -> None:
        _BY_NAME.setdefault(cls.__name__, cls)

    def __init__(self, message: str | None = None, **values: object) -> None:
        # URLs of images and checksums may have passwords in them, and messages are shown, logged and kept.
        text = message if message is not None else self.template.format(**values)
        self.message = masking.mask_text(text[:_LONGEST])
        super().__init__(self.message)


_BY_NAME: dict[str, type[IngotError]] = {}


class Invalid(IngotError):
    """What the client sent cannot be used; the message names field, value and what is allowed.

    A value is shown as :func:`ingot.common.masking.describe_value` has it: callers need neither cut nor mask it.
    """

    code = 400
    template = "Invalid {field}: {value}. {allowed}"

    def __init__(self, message: str | None = None, **values: object) -> None:
        if "value" in values:
            values["value"] = masking.describe_value(str(values.get("field", "")), values["value"])
        super().__init__(message, **values)


class PatchError(Invalid):
    template = "Couldn't apply patch '{patch}'. Reason: {reason}"


class UnknownStep(Invalid):
    """A step that neither driver nor agent offers for the node."""


class MissingParameter(Invalid):
    """driver_info, instance_info or a step lacks something."""

    template = "Missing {where}: {names}. Set it."


class UnsupportedInterface(Invalid):
    """The hardware type or the interface does not do this."""

    template = "Driver {driver} does not support {what}."


class InterfaceNotFound(Invalid):
    template = (
        "Could not find {interface_type} interface '{name}' for hardware type {driver}. "
        "Enabled and supported are: {enabled}."
    )


class StateTransitionRefused(Invalid):
    template = (
        'The requested action "{action}" can not be performed on node "{node}" while it is in state "{state}". '
        "Possible here: {possible}."
    )


class InMaintenance(Invalid):
    template = (
        "The {action} action cannot be performed on node {node} because it is in maintenance: {reason}. "
        "Clear maintenance first."
    )


class NoConductor(Invalid):
    template = (
        "No valid host was found. Reason: No conductor service registered which supports driver {driver} for "
        'conductor group "{group}". Ensure the driver is valid and enabled.'
    )


class NotAuthenticated(IngotError):
    code = 401
    template = "Authentication is required: {reason}."


class Forbidden(IngotError):
    code = 403
    template = "Operation not permitted."


class NotFound(IngotError):
    """An object that the URL names does not exist."""

    code = 404
    template = "{noun} {ident} could not be found."


class RouteNotFound(IngotError):
    code = 404
    template = "The resource could not be found."


class MethodNotAllowed(IngotError):
    code = 405
    template = "Method {method} is not allowed here. Allowed: {allowed}."


class VersionRefused(IngotError):
    """The API version does not exist, or is older than what was asked for."""

    code = 406
    template = "Request not acceptable. The minimal required API version should be 1.{minor}"


class NotAcceptable(IngotError):
    code = 406
    template = "Cannot answer with {accept}; the API answers application/json only."


class Conflict(IngotError):
    """Another request or conductor was first, or the node is in the wrong state for it."""

    code = 409
    template = "{reason}"


class Duplicate(Conflict):
    template = "A {noun} with {field} {value} already exists."


class NodeLocked(Conflict):
    template = (
        "Node {node} is locked by host {host} for {purpose} since {since}; please retry after the current operation is "
        "completed."
    )


class NodeBusy(Conflict):
    """The node is in a state in which it cannot be edited or deleted."""

    template = "Node {node} can not be {done} while it is in state {state}. Allowed in: {allowed}."


class ChangedMeanwhile(Conflict):
    template = "Node {node} was changed by another request while this one was handled. Read it again and retry."


class InstanceAssociated(Conflict):
    template = "Node {node} is associated with instance {instance}."


class ConsoleTaken(Conflict):
    """Another user, or another client of the BMC, has the serial console of a machine."""

    template = "The serial console of node {node} is taken: {reason}"


class PreconditionFailed(IngotError):
    """If-Match or If-None-Match does not fit what is there."""

    code = 412
    template = (
        '{what} has the entity tag "{current}" now; the request has {header}: {given}. Read it again, and decide anew '
        "on what is there."
    )


class BodyTooLarge(IngotError):
    code = 413
    template = "Request body is too large: {size} bytes; at most {limit} are accepted."


# 502 and 503: what Ingot depends on does not answer


class HardwareError(IngotError):
    """A BMC or an agent refused or did not answer; the message says which address and what to check.

    The engine treats it as final for a step; :class:`HardwareUnreachable` is retried where that is safe.
    """

    code = 502
    template = "{what} failed: {reason}"


class HardwareUnreachable(HardwareError):
    template = "{what} did not answer: {reason}"


class AgentError(HardwareError):
    """The agent refused a command or reported that it failed."""


class AgentUnreachable(AgentError, HardwareUnreachable):
    """The agent did not answer at its callback URL."""


class AgentRefused(AgentUnreachable):
    """The machine is there, but not the agent: nothing listens at the callback URL, or something else does."""


class AgentGone(AgentError):
    """The agent has ended, and with it what it was doing and its logs: its process or its machine was started anew."""

    template = (
        "its agent is gone, with its process or its machine restarted; what it has logged is only where its serial "
        "console is recorded: {reason}"
    )


class AgentBusy(AgentError):
    """The agent runs another command; the same request may be made again when that has ended."""

    template = "{what} was not accepted: {reason}"


class ServiceUnavailable(IngotError):
    """Database or bus are away for now; nothing was lost, the client should try again."""

    code = 503
    template = "{what} is not available at the moment: {reason}. Try again in a few seconds."


class ConductorAway(ServiceUnavailable):
    """The conductor that is asked does not answer; requests that can do without its answer go on."""


SEE_LOG = "the log tells the cause"
"""The reason in an answer to clients, who must not learn of hosts and users."""


class AccessRefused(ServiceUnavailable):
    """Database or bus are there and refuse Ingot: to try again is of no use before an administrator has acted."""

    template = "{what} refuses Ingot: {reason}. An administrator has to correct that."


class ImageServiceUnavailable(IngotError):
    """Glance does not answer; unlike :class:`ServiceUnavailable` a step's own trouble, retried as hardware is."""

    code = 503
    template = "{field}: image {image} cannot be had from Glance: {reason}. Try again when it answers."


class NetworkServiceUnavailable(IngotError):
    """Neutron does not answer; as with :class:`ImageServiceUnavailable`, a step is tried again."""

    code = 503
    template = "{what} cannot be had from Neutron: {reason}. Try again when it answers."


class NetworkError(IngotError):
    """Neutron refuses what it is asked for, or a port cannot be connected; the message has its own words."""

    code = 502
    template = "{what}: Neutron refuses: {reason}"


class SwitchUnavailable(IngotError):
    """A switch does not answer, or not in time; as with :class:`ImageServiceUnavailable`, a step is tried again."""

    code = 503
    template = "{what}: the switch cannot be reached: {reason}. Try again when it answers."


class SwitchError(IngotError):
    """A switch refuses an order, or is not known; the message has its own words."""

    code = 502
    template = "{what}: the switch refuses: {reason}"


class StorageServiceUnavailable(IngotError):
    """Cinder does not answer; as with :class:`ImageServiceUnavailable`, a step is tried again."""

    code = 503
    template = "{what} cannot be had from Cinder: {reason}. Try again when it answers."


class StorageError(IngotError):
    """Cinder refuses what it is asked for; the message has its own words."""

    code = 502
    template = "{what}: Cinder refuses: {reason}"


# Inside the conductor


class LockLost(IngotError):
    """The node's lock belongs to another conductor now: whatever this task knows is stale and must not be written."""

    template = "Node {node}: the lock with epoch {epoch} is no longer held by {host}."


class StepFailed(IngotError):
    """A step ended in an error; the message says why, the engine adds which step."""

    template = "{reason}"


def unexpected_error(exc: BaseException) -> StepFailed:
    """Return a bug as the error that an operator reads: further lines of a database's error are the statement."""
    first_line = str(exc).partition("\n")[0]
    return StepFailed(f"unexpected {type(exc).__name__}: {first_line}")


class Aborted(StepFailed):
    """A flow ends because its abort was requested."""

    template = "aborted by request"


class AgentVersionMismatch(StepFailed):
    """After a reboot another agent answers than the one that the steps were planned with (specification 000)."""

    template = "agent version mismatch: {reason}"


class ImageError(StepFailed):
    """The image or config drive of a deployment cannot be used."""


class ConfigurationError(IngotError):
    """The service cannot start or work with the options it was given; the message names option, value and choice."""

    template = "Configuration option {option}: {value!r}. {allowed}"

    @property
    def messages(self) -> list[str]:
        """All that is wrong, one message for each."""
        return [self.message]


class Occupied(ConfigurationError):
    """What an option names is in use by another process, which may be about to end."""


class ConfigurationErrors(ConfigurationError):
    """Everything that is wrong with the options, at once."""

    def __init__(self, messages: Sequence[str]) -> None:
        self._messages = list(dict.fromkeys(messages))
        count = len(self._messages)
        head = [f"{count} things in the configuration are to be corrected:"] if count > 1 else []
        super().__init__("\n".join([*head, *self._messages]))

    @property
    def messages(self) -> list[str]:
        return self._messages


class Refusals:
    """What is refused of the options, one after the other, until all of it is raised."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    @contextlib.contextmanager
    def collect(self) -> Iterator[None]:
        """Keep what is refused within, and go on after it."""
        try:
            yield
        except ConfigurationError as exc:
            self.messages += exc.messages

    def add(self, option: str, value: object, allowed: str) -> None:
        """Keep the refusal of an option's value."""
        self.messages.append(ConfigurationError(option=option, value=value, allowed=allowed).message)

    def finish(self) -> None:
        """Raise what was kept.

        :raises ConfigurationError: there is something.
        """
        if self.messages:
            raise ConfigurationErrors(self.messages)


def by_name(name: str) -> type[IngotError]:
    """Return the class that an error of another process had; IngotError (a 500) for an unknown name."""
    return _BY_NAME.get(name, IngotError)
