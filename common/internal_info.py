"""What ``driver_internal_info`` of a node holds: each key with the module that owns it, which alone writes it.

The conductor keeps here what it knows of a node and no query asks for; what queries need has a column. Drivers from
elsewhere may keep keys of their own, with a prefix of their own.

Besides, a flow keeps its plan under ``<name>_steps`` and its position in it under ``<name>_step_index``
(:func:`ingot.common.steps.read_plan`; the name is that of its kind, if it has one). A flow starts by removing those of
the flow before it, so there is only one plan at a time.
"""

from typing import TypedDict

from ingot.common.json_types import Json


class AgentFacts(TypedDict, total=False):
    """What the conductor learned by asking the agent that runs now."""

    versions: Json | None  # drivers/agent/commands: of the agent's hardware managers
    agent_version: str | None  # drivers/agent/commands: of the agent that the steps were planned with
    offered: dict[str, dict[str, bool]]  # drivers/agent/commands: by kind and step, whether the step needs a reboot
    ended: str | None  # drivers/agent/commands: the last command whose outcome was handled
    used_as_found: bool  # drivers/agent/booting: fast track found the agent running
    was_told_the_password: bool  # drivers/agent/rescue


class ChildOutcome(TypedDict):
    """How the flow ended that a child node ran for its parent."""

    run: str
    error: str | None


class InternalInfo(TypedDict, total=False):
    in_band_steps_collected: bool  # conductor/steps/cursor: the agent was asked for its steps, or need not be
    in_agent_for_cleaning: bool  # conductor/steps/agent_session: the machine entered and has not left
    in_agent_for_service: bool  # conductor/steps/agent_session: the same
    for_parent: ChildOutcome  # conductor/steps/children
    agent: AgentFacts  # drivers/agent/session
    fake_bios_settings: dict[str, str | None]  # drivers/generic/fake, like all that follow
    fake_boot_device: Json
    fake_firmware: list[Json]
    fake_indicators: dict[str, str]
    fake_virtual_media: dict[str, str]
    vnc_host: str
    vnc_port: int
