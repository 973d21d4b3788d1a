"""What nodes wait for: the one table of what explanations say of it (used by api, conductor, drivers, db)."""

import datetime
import enum
from collections.abc import Mapping
from typing import NamedTuple

OWN_MEMORY = "engine"
"""Key of a step's memory that holds the engine's own."""


class Wait(enum.StrEnum):
    """The types of waits; :data:`TEXTS` says what each is."""

    REQUEST = "request"
    TURN = "turn"
    NO_CONDUCTOR = "no conductor"
    DEAD_CONDUCTOR = "dead conductor"
    CONDUCTOR = "conductor"
    OPERATOR = "operator"
    BOOT_SCRIPT = "boot script"
    AGENT_START = "agent start"
    FIRST_HEARTBEAT = "first heartbeat"
    HEARTBEAT = "heartbeat"
    COMMAND = "command"
    AGENT = "agent"
    POWER = "power"
    BMC = "bmc"
    HARDWARE = "hardware"
    FILE = "file"
    IMAGE_SERVICE = "image service"
    INSPECTION_SERVICE = "inspection service"
    NETWORK_SERVICE = "network service"
    SWITCH = "switch"
    PORTS = "ports"
    STORAGE_SERVICE = "storage service"
    CHILDREN = "children"
    TIME = "time"


class Text(NamedTuple):
    """What is said of a type of wait.

    :param what: is waited for; ``{...}`` are facts of the node, see ``ingot.db.explanations``.
    :param after: what happens next.
    :param advice: what an operator does about it when it lasts; the one next thing.
    :param causes: what usually makes it long.
    """

    what: str
    after: str
    advice: str
    causes: tuple[str, ...] = ()


_HEARTBEAT_ENDS = "The agent's heartbeat makes the flow go on. {late}"
_ANSWER_ENDS = "The flow goes on as soon as it answers. {late}"
_ADDRESS = (
    "the agent cannot reach the API: ipa-api-url, which is [service_catalog] endpoint_override, routes, firewalls"
)

TEXTS: Mapping[str, Text] = {
    Wait.REQUEST: Text(
        "Nothing: no work on the node is under way",
        "The node stays as it is until a request comes.",
        "Request what is to be done next.",
        ("the last work has failed: last_error says why", "what should have been requested was not"),
    ),
    Wait.TURN: Text(
        "A conductor to take up {work}",
        "The conductor begins as soon as it has a thread; a lost wake-up is found by its next sweep.",
        "See whether conductors, database and broker run, and whether a conductor has a thread left.",
        (
            "all threads of the conductor are in use: [conductor] workers_pool_size",
            "the node's BMC did not answer lately: such nodes share a quarter of as many threads",
            "the conductor, the database or the broker is stopped or overloaded",
        ),
    ),
    Wait.NO_CONDUCTOR: Text(
        "A conductor that serves driver {driver} in group '{group}': none is online",
        "The first such conductor goes on where the work stands. Nothing is lost.",
        "Start a conductor of group '{group}' that has {driver} enabled.",
        (
            "all conductors of the group are stopped, drained or cut off from the database",
            "the driver is not in [DEFAULT] enabled_hardware_types of the conductors of this group",
            "conductor_group of the node, or [conductor] conductor_group, is misspelled",
        ),
    ),
    Wait.DEAD_CONDUCTOR: Text(
        "Another conductor to take the node over from {holder}, which has sent no heartbeat lately",
        "What is safe to repeat is done again; otherwise the flow fails and says so.",
        "Start {holder} again, or another conductor of its group.",
        (
            "no other conductor of the group is online, or none has the driver",
            "conductor {holder} is frozen or cut off",
        ),
    ),
    Wait.CONDUCTOR: Text(
        "Conductor {holder}, which works on it ({purpose})",
        "The lock is given back when the call has ended. Other requests wait for it, or are refused with 409.",
        "See whether BMC and agent answer: the log of {holder} names the call.",
        (
            "a BMC that answers slowly or not at all: [ipmi] command_retry_timeout",
            "an agent that answers slowly: [agent] command_timeout",
        ),
    ),
    Wait.OPERATOR: Text(
        "An operator: the step hold stands still until unhold or abort is requested",
        "The verb unhold goes on with the next step, abort ends the flow. There is no time limit.",
        "Request unhold to go on, or abort to end the flow.",
        ("unhold was not requested",),
    ),
    Wait.BOOT_SCRIPT: Text(
        "The machine to boot from the network: it has not fetched its boot script since the step began",
        "The machine fetches its boot script, starts the agent, and the agent calls. {late}",
        "Look at the machine's console: does it boot from the network, and does DHCP answer it?",
        (
            "the machine does not boot from the network: boot order, boot mode, cable, VLAN",
            "DHCP does not answer it, or does not name the boot script's address",
            "no port of the node with pxe_enabled has the MAC address of the card that boots",
            "its address is not in [api] machine_networks",
            "its power interface is agent, and no agent ran that could restart it: an operator has to, by hand",
        ),
    ),
    Wait.AGENT_START: Text(
        "The agent to start: the machine has fetched its boot script, and no agent has looked the node up",
        "The agent starts, looks its node up and calls. {late}",
        "Look at the machine's console: how far do kernel, ramdisk and agent come?",
        (
            "the machine cannot fetch kernel or ramdisk, or they are for another architecture",
            "the ramdisk has no driver for the machine's network card, or gets no address there",
            _ADDRESS,
        ),
    ),
    Wait.FIRST_HEARTBEAT: Text(
        "The agent's first call: it has started and looked its node up",
        _HEARTBEAT_ENDS,
        "Look for refused heartbeats in the API's log, then at the machine's console.",
        (
            "the agent was given no token, because another client had looked the node up before: see the API's log",
            "the API refuses its heartbeats: [agent] require_tls, its certificate, its token",
            "during an inspection, the agent is still collecting what its machine is made of",
        ),
    ),
    Wait.HEARTBEAT: Text(
        "The agent's next heartbeat",
        _HEARTBEAT_ENDS,
        "Look at the machine's console: is it still running, and on its network?",
        ("the agent's machine was reset, hangs or lost its network", _ADDRESS),
    ),
    Wait.COMMAND: Text(
        "The agent to end what step {step} has ordered",
        "The agent is asked at its heartbeats, every few seconds at most, and when one is overdue. {late}",
        "Look at the machine's console: does the work of {step} go on?",
        (
            "the work takes long: erasing disks, building arrays, writing a large image",
            "the agent hangs: look at its machine's console",
        ),
    ),
    Wait.AGENT: Text(
        "The agent to answer the conductor: it is busy or cannot be reached",
        "It is asked again for [agent] command_timeout seconds; max_command_attempts times as long if it still calls. "
        "{late}",
        "See whether the conductor reaches the agent's callback address.",
        ("the conductor cannot reach the agent's callback address", "the agent runs another command, or hangs"),
    ),
    Wait.POWER: Text(
        "The machine to reach its new power state",
        "Its power state is read every few seconds. {late}",
        "Ask the BMC for the power state; reset the BMC if it does nothing.",
        (
            "the BMC accepts commands and does nothing: reset the BMC",
            "the operating system takes long to shut down",
            "the BMC restarts its network together with the machine",
        ),
    ),
    Wait.BMC: Text(
        "The BMC, which did not answer: the step is tried again in some seconds",
        "A good answer lets the step go on; otherwise its last try fails the flow. last_error has the reason.",
        "Check address, user and password of the BMC in driver_info, and its network; reset the BMC if it hangs.",
        (
            "the BMC's address, user or password in driver_info is wrong",
            "the BMC's network is down, or the BMC hangs: reset it",
        ),
    ),
    Wait.HARDWARE: Text(
        "Hardware that step {step} has set to work",
        "The step is called again every few seconds. {late}",
        "Look at the machine's console and the BMC's log for what {step} does.",
        ("what the step does takes long", "the hardware, or its BMC, does not do what it has accepted"),
    ),
    Wait.FILE: Text(
        "A file to be fetched, or its server to answer",
        _ANSWER_ENDS,
        "See whether the conductor reaches the file's server, and how fast.",
        ("the server is slow or cannot be reached from the conductor: [DEFAULT] webserver_connection_timeout",),
    ),
    Wait.IMAGE_SERVICE: Text(
        "Glance, which did not answer: the step is tried again in some seconds",
        _ANSWER_ENDS,
        "See whether Glance and Keystone answer the conductor.",
        ("Glance or Keystone is away, or [glance] has a wrong address or wrong credentials",),
    ),
    Wait.NETWORK_SERVICE: Text(
        "Neutron, which did not answer: the step is tried again in some seconds",
        _ANSWER_ENDS,
        "See whether Neutron and Keystone answer the conductor.",
        ("Neutron or Keystone is away, or [neutron] has a wrong address or wrong credentials",),
    ),
    Wait.SWITCH: Text(
        "A switch that did not answer in time, or that others change: the step is tried again in some seconds",
        _ANSWER_ENDS,
        "See whether the conductor can log in to the switch, and how long that takes.",
        (
            "the switch is away, or its section [genericswitch:NAME] has a wrong address",
            "others change the switch all the time: [switch] turn_timeout",
        ),
    ),
    Wait.PORTS: Text(
        "Neutron to connect the machine's ports: their status has to be ACTIVE, or the time that they get has to pass",
        "The flow goes on when Neutron reports it (POST /v1/events), or says so when it is asked. {late}",
        "See what status the ports have in Neutron, and the log of neutron-server.",
        (
            "the mechanism driver of Neutron waits for a switch that is slow or away",
            "a DHCP agent of the ports' network is away",
            "the agent on a smart NIC is away, because its machine is off",
            "the mechanism driver never makes ports ACTIVE: set [neutron] port_active_timeout to 0",
        ),
    ),
    Wait.STORAGE_SERVICE: Text(
        "Cinder, which did not answer, or did not let the volumes of the machine go",
        _ANSWER_ENDS,
        "See whether Cinder and Keystone answer the conductor, and what Cinder says of the volumes.",
        ("Cinder or Keystone is away, or [cinder] has a wrong address or wrong credentials",),
    ),
    Wait.INSPECTION_SERVICE: Text(
        "The inspection service, which is asked again and again whether it is done",
        "When it is, what it was sent becomes the inventory of the node. {late}",
        "See whether the machine runs the agent and reaches the inspection service.",
        (
            "the machine does not boot the agent: its console shows why",
            "the agent cannot reach the service: its endpoint, or [inspector] callback_endpoint_override",
            "the service is away, or does not find the node by its ports",
        ),
    ),
    Wait.CHILDREN: Text(
        "Child nodes to end step {step}: each has a flow of its own",
        "When all have ended it well the flow goes on; the first that fails ends it. {late}",
        "Ask why its child nodes are where they are.",
        ("a child node waits itself: ask for its explanation", "a child node is locked or busy with other work"),
    ),
    Wait.TIME: Text(
        "The end of the time that step {step} was asked to wait",
        "Then the next step begins.",
        "Nothing: it ends on its own.",
    ),
}

LONGEST_PAUSE_S = 4.0
"""Seconds for which an agent is not asked again at most. Real ones leave five between two heartbeats, so that none of
these ever waits."""

_SHORTEST_PAUSE_S = 0.1


def pause_after_question(began: datetime.datetime, asked: datetime.datetime) -> float:
    """Return for how many seconds an agent that is still busy with a step is not asked again, however often it calls.

    It is a tenth of the time that the step has taken: what has just begun may have ended at the next heartbeat.
    """
    seconds = min((asked - began).total_seconds() / 10, LONGEST_PAUSE_S)
    return seconds if seconds >= _SHORTEST_PAUSE_S else 0.0
