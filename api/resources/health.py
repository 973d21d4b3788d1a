"""``GET /healthcheck``: whether this API can serve requests, for balancers and probes."""

import os

from ingot.api.web import fields, health_backends
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import errors, networks, telemetry

_WHAT = "This API"
_OF_PROXIES = ("forwarded", "x-forwarded-")


@operation(answer=Answer(shows=Plain(fields.TEXT_SCHEMA), media="text/plain"))
def show(call: Call) -> Reply:
    """Answer 200 while the API can serve requests.

    A broker that is away does not count: requests are accepted, and their work is found by searches.

    :raises NotFound: the operator has switched it off, or not for this client.
    :raises ServiceUnavailable: the API is not ready, or the operator wants no requests for it.
    """
    options = call.conf.healthcheck
    if not options.enabled:
        raise errors.NotFound("There is no /healthcheck here: [healthcheck] enabled is off.")
    if not _is_for(call):
        raise errors.NotFound("There is no /healthcheck for this client: see [healthcheck] allowed_source_ranges.")
    if os.path.exists(options.disable_by_file_path or ""):  # a Path raises where this service may not look
        raise errors.ServiceUnavailable(what=_WHAT, reason="its operator sends requests elsewhere")
    parts = {"database": call.db.probe.read(), **telemetry.read_health(), **health_backends.ask(call.conf)}
    lacks = [f"{name} ({why})" if options.detailed else name for name, why in parts.items() if why is not None]
    if lacks:
        raise errors.ServiceUnavailable(what=_WHAT, reason=f"not ready: {', '.join(lacks)}")
    bus = call.client.bus_trouble()
    states = {**dict.fromkeys(parts, "OK"), "message bus": f"degraded: {bus}" if bus else "OK"}
    lines = [f"{name}: {state}\n" for name, state in states.items()] if options.detailed else []
    return Reply("".join(["OK\n", *lines]))


def _is_for(call: Call) -> bool:
    """Return whether the client may ask."""
    options = call.conf.healthcheck
    if options.ignore_proxied_requests and any(name.lower().startswith(_OF_PROXIES) for name in call.headers.keys()):
        return False
    return not options.allowed_source_ranges or networks.contain(options.allowed_source_ranges, call.address)
