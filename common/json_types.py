"""Types of JSON documents: of those from outside, and of what columns of a node hold as JSON."""

from typing import Any, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = dict[str, Any]
"""An object whose keys are not ours: a request's body, ``properties``, ``extra``. For known keys use a TypedDict."""


class Requester(TypedDict, total=False):
    """Who asked for accepted work, and the ids of the request: that of the API, and the client's own if it sent one."""

    user: str | None
    project: str | None
    roles: NotRequired[list[str]]
    request_id: str
    global_request_id: str | None
    traceparent: NotRequired[str]


class NodeWas(TypedDict, total=False):
    """What was known of a node before a change of this: its name, and the projects that it belonged to."""

    name: str | None
    owner: str | None
    lessee: str | None


class ReplacedFlow(TypedDict):
    flow: str
    run: str | None


class Unchecked(TypedDict):
    """Whose rights the check of a request is about that no conductor could make when it was accepted."""

    project: str | None
    roles: list[str]


class StepRequest(TypedDict, total=False):
    """A step in a request, a template or a runbook. Interface and step are always there."""

    interface: str
    step: str
    args: Json | None
    priority: float
    execute_on_child_nodes: bool
    limit_child_node_execution: list[str] | None


class FlowRequest(TypedDict, total=False):
    """The column ``request``: arguments of the accepted provision request, until its flow ends."""

    asked_by: Requester
    replaces: ReplacedFlow  # the flow that waited when this was accepted
    unchecked: Unchecked  # no conductor answered when this was accepted: the flow begins with the checks
    configdrive: object  # what the config drive is made from, or its URL
    rescue_password: str  # hashed
    rebuild: bool
    clean_steps: list[StepRequest]
    deploy_steps: list[StepRequest]
    service_steps: list[StepRequest]
    disable_ramdisk: bool
    origin: str  # of the steps: request, or runbook NAME
    kind: str  # of the steps that a child node runs for its parent
    steps: list[StepRequest]  # those steps
    run: str  # the run that a child's flow is
    restarts: int  # how often the flow was started again
    inventory_before: str | None  # when the inventory was made that there was at the flow's start
    aborted: str  # what to report at the end of a flow that was aborted


class PowerRequest(TypedDict, total=False):
    """The column ``power_request``: an accepted power change, until it ends."""

    asked_by: Requester
    target: str
    timeout: int | None
    memory: Json  # what the power interface remembers between its calls
    until: float | None  # when the change has ended, or fails, on the clock of time.time
    keeps_error: bool  # it belongs to a flow that has failed, whose last_error stays


class Hold(TypedDict):
    """An element of the column ``maintenance_holds``; see :mod:`ingot.db.maintenance`."""

    name: str
    scope: str
    reason: str | None
    since: str | None
    user: str | None  # whose it is: a user's
    project: str | None
    fault: str | None  # or that of a fault which a conductor found
    conductor: str | None


class MediaConfig(TypedDict, total=False):
    """What is on the image from which the machine boots without a network; see ``drivers/images/media``.

    Files are URLs, or ids in Glance. A finished ``image`` has neither kernel nor ramdisk beside it.
    """

    ticket: str
    kernel: str
    ramdisk: str
    bootloader: str
    image: str
    arguments: str
    architecture: str
    of_user: list[str]  # names of the files that a user names
    token: str  # of the agent that boots from it
    without_network_data: bool  # the agent is to ask for its addresses
    network_data: Json  # of the agent; else that of the node
    second: str  # what is in a second drive: settings, for the agent of a finished image; or the node's configdrive


class BootConfig(TypedDict, total=False):
    """The column ``boot_config``: what the machine's next network boot gets; see ``drivers/pxe``."""

    target: str  # ramdisk, instance, image, volume or disk, or trial
    kernel: str
    initrd: str
    kernel_args: str
    image: str  # what iPXE starts as a drive
    links: dict[str, str]  # drivers/images: links to fetched images, by name
    media: MediaConfig


class AgentFacts(TypedDict, total=False):
    """What the conductor learned by asking the agent that runs now."""

    versions: Json | None  # drivers/agent/commands: of the agent's hardware managers
    agent_version: str | None  # drivers/agent/commands: of the agent that the steps were planned with
    offered: dict[str, dict[str, bool]]  # drivers/agent/commands: by kind and step, whether the step needs a reboot
    ended: str | None  # drivers/agent/commands: the last command whose outcome was handled
    used_as_found: bool  # drivers/agent/booting: fast track found the agent running
    was_told_the_password: bool  # drivers/agent/rescue
    closed: bool  # drivers/agent/session: none is expected once this one has restarted its machine


class OfferedSteps(TypedDict):
    """The steps of a kind that an agent has offered, whether it still runs or not."""

    at: str | None
    priorities: dict[str, float]  # the agent's own, by ``interface.step``


class ChildOutcome(TypedDict):
    """How the flow ended that a child node ran for its parent."""

    run: str
    error: str | None


class InternalInfo(TypedDict, total=False):
    """The column ``driver_internal_info``: each key with the module that owns it, which alone writes it.

    The conductor keeps here what it knows of a node and no query asks for; what queries need has a column. Drivers from
    elsewhere may keep keys of their own, with a prefix of their own.

    Besides, a flow keeps its plan under ``<name>_steps`` and its position in it under ``<name>_step_index``
    (:func:`ingot.common.steps.read_plan`; the name is that of its kind, if it has one). A flow starts by removing those
    of the flow before it, so there is only one plan at a time.
    """

    in_band_steps_collected: bool  # conductor/steps/cursor: the agent was asked for its steps, or need not be
    boot_file_doubts: list[str]  # drivers/pxe: why the conductor could not check files of the next boot
    in_agent_for_cleaning: bool  # conductor/flows: the machine entered and has not left
    in_agent_for_service: bool  # conductor/flows: the same
    for_parent: ChildOutcome  # conductor/steps/children
    agent: AgentFacts  # drivers/agent/session
    steps_offered: dict[str, OfferedSteps]  # drivers/agent/commands: by kind, those of the last agent that was asked
    hardware_manager_version: Json | None  # drivers/agent/commands: of the agent that listed its steps last
    ipmi_boot_device: Json  # drivers/ipmi/boot_flags: the one that lasts, where the BMC does not keep it
    redfish_boot_device: Json  # drivers/redfish/boot_device: the one that lasts, where the BMC does not keep it
    raid_root_device: Json  # drivers/interfaces/raid: the hint that properties have from the root volume
    neutron_networks: list[str]  # drivers/neutron/purpose_ports: purposes for which there may be ports in Neutron
    switch_ports: Json  # drivers/switch/wiring: ports of switches that may be on a VLAN
    cinder_instance: str  # drivers/cinder/storage: as what Cinder knows the machine that its volumes are attached to
    fake_bios_settings: dict[str, str | None]  # drivers/generic/fake, like all that follow
    fake_boot_device: Json
    fake_firmware: list[Json]
    fake_indicators: dict[str, str]
    fake_virtual_media: dict[str, str]
    vnc_host: str
    vnc_port: int
