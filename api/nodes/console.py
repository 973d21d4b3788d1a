"""A node's serial console: a websocket to read it and to type, and what the machine has said as a text."""

from ingot.api.nodes import management, nodes
from ingot.api.web import consoles, fields, operations, web_sockets
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import console_frames as frames
from ingot.common import errors

_WRITE = "ingot:node:console:write"


@operation(
    Param("mode", operations.build_choice(("read", "write"))),
    Param("take_over", fields.parse_flag),
    answer=Answer(101, media="application/octet-stream"),
    escalation=operations.Escalation("mode", "write", _WRITE),
)
def attend(call: Call, node: str) -> Reply:
    """Open the serial console, as a websocket.

    Binary messages are bytes of the serial line, both ways. Text messages are JSON.
    """
    mode, take_over = call.query.get("mode", "read"), call.query.get("take_over", False)
    if take_over and mode != "write":
        allowed = "Send it with mode=write: who only reads takes nothing over."
        raise errors.Invalid(field="take_over", value=take_over, allowed=allowed)
    found = nodes.read(call, node, *management.SERVED, rule=_WRITE if mode == "write" else None)
    handshake = web_sockets.Handshake(call.path, call.headers, call.offers_web_socket, consoles.SUBPROTOCOL)
    user = call.ctx.user_name or call.ctx.user_id or call.where
    console = consoles.ConsoleRelay(call.consoles, handshake, found.uuid, call.session)
    try:
        place: frames.Place = call.client.call(
            call.ctx, found, "open_console", mode=mode, take_over=take_over, user=user
        )
    except BaseException:
        console.close()
        raise
    console.find(place)
    return Reply(console, 101)


@operation(answer=Answer(shows=Plain({"type": "string"}), media="text/plain"))
def show_log(call: Call, node: str) -> Reply:
    """Show what the machine has said on its serial console since it was switched on last.

    It is kept while the console is enabled or read, and is cut off at the beginning if it is long.
    """
    said: str | None = management.ask(call, node, "get_console_log")
    if said is None:
        raise errors.NotFound(
            f"The serial console of node {node[:80]} is not open: nothing of it is kept. Enable it (PUT "
            f"/v1/nodes/{node[:80]}/states/console), or read it."
        )
    return Reply(said)
