"""The requests of agents: lookup, heartbeat and the end of an inspection.

They are the most frequent ones, and need no authentication: their answers hold little.
"""

import contextlib
import hmac
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from oslo_log import log

from ingot.api.agents import discovery
from ingot.api.nodes.node_fields import LOOKUP_TABLE
from ingot.api.web import collection, fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Param, operation
from ingot.common import clock, errors, masking, networks, states
from ingot.common.json_types import Json
from ingot.db import agents, models, node_lists
from ingot.db import inventory as inventories

LOG = log.getLogger(__name__)

INSPECTION = "inspect"
"""The conductor's flow that waits for the inventory from an agent."""

_TOKEN_SINCE = 84
"""Minor version from which the answer to an inventory has the token."""

_MOST_CARDS = 1024  # of a machine, with the virtual functions of its cards


def _parse_addresses(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return MAC addresses; what is none (an InfiniBand GUID, say) is left out."""
    found = []
    for part in given:
        with contextlib.suppress(errors.Invalid):
            found.append(fields.parse_mac(name, part.strip()))
    return tuple(found)


class _AgentAnswer(NamedTuple):
    """The shape of an answer to an agent.

    :param extra: the schemas of further keys.
    :param only: the keys that every answer has; none: all of them.
    """

    extra: Json
    only: tuple[str, ...] = ()

    def schema(self, named: Json) -> Json:
        """See :class:`ingot.api.web.operations.Shape`."""
        keys = {"node": _LOOKED_UP.schema(named), "config": {"type": "object"}, **self.extra}
        return fields.object_schema(keys, self.only) if self.only else fields.complete_schema(keys)


_LOOKED_UP = collection.One(LOOKUP_TABLE, node_lists.SOURCE.json_schema)


@operation(
    Param("addresses", lambda name, given: _parse_addresses(name, given.split(",")), repeats=True),
    Param("node_uuid", fields.parse_uuid),
    answer=operations.Answer(shows=_AgentAnswer({})),
)
def lookup(call: Call) -> Reply:
    addresses, node_uuid = call.query.get("addresses", ()), call.query.get("node_uuid")
    if not addresses and node_uuid is None:
        raise errors.Invalid("At least one of 'addresses' (with a valid MAC address) and 'node_uuid' is required.")
    node = agents.look_up(call.db, node_uuid, addresses)
    allowed = states.FAST_TRACK_LOOKUP_ALLOWED if call.conf.deploy.fast_track else states.LOOKUP_ALLOWED
    if node is None or (call.conf.api.restrict_lookup and node.provision_state not in allowed):
        raise errors.NotFound("No node with this UUID or these addresses is waiting for an agent.")
    token = _issue_token(call, node)
    if token is None and agents.request_check(call.db, node):
        call.client.notify(call.ctx, node, why="lookup")
    return Reply(_build_answer(call, node, token))


def _issue_token(call: Call, node: models.Node) -> str | None:
    """Return the token of the node's boot if it is for this client, and log what an operator must know of it."""
    token = agents.issue_token(call.db, node, call.address, call.conf.agent.token_reissue_timeout)
    if token and node.agent_token is None:
        LOG.info("Node %s: the agent token of this boot is given to %s", node.uuid, call.where)
    elif node.agent_token is not None and node.agent_token_at is None:  # it was never to be given out
        LOG.info(
            "Node %s: looked up from %s; its agent has its token from its boot medium, or none runs",
            *(node.uuid, call.where),
        )
    elif token is None and node.agent_url is None:  # no agent has shown it: one that has lost it cannot go on
        LOG.warning(
            "Node %s: the agent token of this boot is not given to %s; %s has had it since %s ([agent] "
            "token_reissue_timeout). An agent that has none ends, and its flow when its time is over; boot the machine "
            "anew. If that address is no machine's of yours, see [api] machine_networks",
            *(node.uuid, call.where, node.agent_address or "an unknown address"),
            clock.iso(node.agent_token_at) if node.agent_token_at else "an unknown time",
        )
    return token


def _build_answer(call: Call, node: models.Node, token: str | None) -> Json:
    """Return what an agent learns about its machine, and its settings.

    :param token: None if it is not for this client; an agent that has it on file continues.
    """
    node.__dict__.update(agent_url=None, agent_version=None, agent_last_heartbeat=None, boot_script_at=None)
    settings = {
        "agent_md5_checksum_enable": False,
        "agent_token": token or masking.MASK,
        "agent_token_required": True,
        "disable_deep_image_inspection": call.conf.conductor.disable_deep_image_inspection,
        "heartbeat_timeout": call.conf.api.ramdisk_heartbeat_timeout,
        "metrics": None,  # anything else here the agent takes for its own options
        "metrics_statsd": None,
        "permitted_image_formats": list(call.conf.conductor.permitted_image_formats),
    }
    return {"node": LOOKUP_TABLE.select(call.minor).render(node, call), "config": settings}


def _parse_callback(name: str, value: str) -> str:
    if not _CALLBACK_URL.fullmatch(value):
        allowed = "Expected a http or https URL with a host and, where needed, a port and a path."
        raise errors.Invalid(field=name, value=value, allowed=allowed)
    return value.rstrip("/")


# Conductors append paths and parameters: nothing that the agent sends may change what these are.
_CALLBACK_URL = re.compile(
    r"https?://(?:[\w.-]+|\[[0-9a-f:.]+(?:%[\w.%-]+)?\])(?::\d{1,4}|:[1-6]\d{4})?(?:/[\w./~-]*)?",
    re.ASCII | re.IGNORECASE,
)


_CALLBACK = fields.FieldType({"type": "string", "maxLength": 2048}, _parse_callback)
_HEARTBEAT = fields.Body(
    "heartbeat",
    Field("callback_url", type=_CALLBACK, required=True),
    Field("agent_version", 36, fields.text()),
    Field("agent_token", 62, fields.text()),
    Field("agent_verify_ca", 68, fields.text(longest=2**16)),
    Field("agent_status", 72, fields.FieldType({"enum": ["start", "end", "error", None]})),
    Field("agent_status_message", 72, fields.text(longest=2**16)),
    newer=errors.Invalid,  # a bad request here, not a wrong version (measured contract)
)


@operation(body=_HEARTBEAT, answer=operations.EMPTY_202)
def heartbeat(call: Call, node: str) -> Reply:
    given = call.body
    version, callback = given.get("agent_version"), given["callback_url"]
    if not version:
        raise errors.Invalid(field="agent_version", value=version, allowed="Send the agent's version.")
    if not given.get("agent_token"):
        raise errors.Invalid("Agent token is required for heartbeat processing: send agent_token.")
    found = agents.read_for_heartbeat(call.db, fields.parse_node_ident(call, node))
    if not hmac.compare_digest(given["agent_token"].encode(), (found.agent_token or "").encode()):
        raise _wrong_agent_error()
    if call.conf.agent.require_tls and not callback.startswith("https://"):
        allowed = "TLS is required by configuration: use https."
        raise errors.Invalid(field="callback_url", value=callback, allowed=allowed)
    _refuse_change(call, found, {"callback_url": callback, "agent_verify_ca": given.get("agent_verify_ca")})
    status, message = given.get("agent_status"), given.get("agent_status_message")
    values = {
        "agent_url": callback,
        "agent_version": version,
        "agent_verify_ca": given.get("agent_verify_ca"),
        "agent_status": f"{status}: {message}" if status and message else status,
    }
    if agents.is_repeated(found, values):
        return Reply(None, 202)
    if not agents.record_heartbeat(call.db, found, values):
        raise _wrong_agent_error()
    if agents.needs_wakeup(found):
        call.client.notify(call.ctx, found, why="heartbeat")
    return Reply(None, 202)


_PINNED = {"callback_url": "agent_url", "agent_verify_ca": "agent_verify_ca"}
"""What the first heartbeat of a boot settles, by the name in requests -> column."""


def _refuse_change(call: Call, node: models.Node, given: Mapping[str, str | None]) -> None:
    """Refuse an agent that is not the one which this boot began with, though it has its token.

    :raises Invalid: its address or certificate is another.
    """
    for name, column in _PINNED.items() if node.agent_url is not None else ():
        if given[name] != getattr(node, column):
            LOG.warning("Node %s: a heartbeat from %s has another %s than this boot", node.uuid, call.where, name)
            raise errors.Invalid(
                f'Detected change in ramdisk provided "{name}": the first heartbeat of a boot settles it. Boot the '
                "machine anew for another agent."
            )


def _wrong_agent_error() -> errors.Invalid:
    """Return the error for an agent that is not, or no longer, the node's."""
    return errors.Invalid("Invalid or missing agent token received: look the node up again.")


class _InspectionBody:
    """The body of continue_inspection: what was found. Beside the inventory it may hold anything."""

    schema = fields.Schema(
        "inspection", {"type": "object", "properties": {"inventory": {"type": "object"}}, "required": ["inventory"]}
    )

    def check(self, value: object, minor: int) -> object:
        self.schema.check({} if value is None else value)
        return value


@operation(
    Param("node_uuid", fields.parse_uuid),
    body=_InspectionBody(),
    answer=operations.Answer(202, _AgentAnswer({"uuid": fields.UUID.schema}, only=("uuid",))),
)
def continue_inspection(call: Call) -> Reply:
    """Store what an agent found in its machine. The conductor processes it and ends the inspection.

    What comes from a machine that is not enrolled is kept in the inbox, where that is enabled. The answer has its uuid
    there, which becomes that of its node.
    """
    inventory = call.body["inventory"]
    node_uuid, addresses = call.query.get("node_uuid"), _list_addresses(inventory)
    node = agents.look_up(call.db, node_uuid, addresses) if node_uuid or addresses else None
    if node is None and not node_uuid and (of_bmc := _list_bmc_addresses(inventory)):
        node = agents.look_up_by_bmc(call.db, of_bmc)
    # A quick machine may be up before its BMC reports so and the wait begins.
    inspected = (states.INSPECTING, states.INSPECTWAIT)
    if node is None and addresses and node_uuid is None and call.conf.auto_discovery.enabled:
        return Reply({"uuid": discovery.receive(call, call.body, addresses)}, 202)
    if node is None or node.flow != INSPECTION or node.provision_state not in inspected:
        raise errors.NotFound("No node with this UUID or these addresses is waiting for an inspection.")
    # As with Ironic: clients of the service that stood here before cannot use it. The flow may end before the answer.
    token = _issue_token(call, node) if call.minor >= _TOKEN_SINCE else None
    rest = {name: value for name, value in call.body.items() if name != "inventory"}
    inventories.save(call.db, node.id, inventory, rest, once=True)
    agents.record_inspection(call.db, node)
    call.client.notify(call.ctx, node, why="inspection")
    # Agents look their node up by the uuid from now on.
    return Reply({"uuid": node.uuid, **_build_answer(call, node, token)}, 202)


def _list_bmc_addresses(inventory: Json) -> list[str]:
    """Return the addresses that the machine's BMC has by its own account: by them nodes without ports are found."""
    return [
        str(address)
        for name in ("bmc_address", "bmc_v6address")
        if isinstance(given := inventory.get(name), str) and (address := networks.read_address(given)) is not None
    ]


def _list_addresses(inventory: Json) -> tuple[str, ...]:
    """Return the MAC addresses of the network cards in an inventory, which may have any form.

    :raises Invalid: there are too many to be a machine's.
    """
    cards = inventory.get("interfaces")
    if isinstance(cards, list) and len(cards) > _MOST_CARDS:
        allowed = f"{_MOST_CARDS} network cards at most."
        raise errors.Invalid(field="length of inventory.interfaces", value=len(cards), allowed=allowed)
    named = [card.get("mac_address") for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []
    return _parse_addresses("mac_address", (address for address in named if isinstance(address, str)))
