"""The agent's command that turns its machine into one that its user can log in to."""

import asyncio
from typing import TYPE_CHECKING, Any

from ingot.rack.commands import CommandError, CommandSpec

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

_LAST_WORD = 0.05
"""Seconds in which the answer reaches whoever gave the command."""


async def finalize_rescue(agent: "Agent", params: dict[str, Any]) -> None:
    """Set the password; a moment later the agent is gone, as the machine is its user's from now on."""
    password = params.get("rescue_password")
    if not isinstance(password, str) or not password:
        raise CommandError("InvalidCommandParamsError", "rescue_password is missing")
    agent.machine.rescue_password = {"value": password, "hashed": bool(params.get("hashed"))}
    asyncio.get_running_loop().call_later(_LAST_WORD, agent.die, "the machine is rescued")


COMMANDS = {"rescue.finalize_rescue": CommandSpec(finalize_rescue, asynchronous=False)}
