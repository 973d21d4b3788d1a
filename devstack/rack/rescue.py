"""The agent's command that turns its machine into one that its user can log in to."""

import asyncio
from typing import TYPE_CHECKING

from ingot.rack.commands import CommandSpec

if TYPE_CHECKING:
    from ingot.rack.agent import Agent

_LAST_WORD = 1.0
"""Seconds in which the answer to the command reaches the service."""


async def finalize_rescue(agent: "Agent", rescue_password: str = "", hashed: bool = False) -> None:
    """Set the password; a moment later the agent is gone, as the machine is its user's from now on."""
    agent.machine.rescue_password = {"value": rescue_password, "hashed": hashed}
    asyncio.get_running_loop().call_later(_LAST_WORD, agent.die, "the machine is rescued")


COMMANDS = {"rescue.finalize_rescue": CommandSpec(finalize_rescue, asynchronous=False)}
