"""All routes: which URL, which methods, from which version on. 405 and ``Allow`` come from this table."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from ingot.api.agents import agent_logs, agents, boot
from ingot.api.auth.rules import RULES
from ingot.api.nodes import bios as node_bios
from ingot.api.nodes import bulk, children, maintenance, management, node_states, nodes, plan, provision, timeline
from ingot.api.nodes import firmware as node_firmware
from ingot.api.nodes import history as node_history
from ingot.api.nodes import inventory as node_inventory
from ingot.api.nodes import traits as node_traits
from ingot.api.resources import (
    allocations,
    chassis,
    conductors,
    deploy_templates,
    drivers,
    events,
    inspection_rules,
    network_events,
    portgroups,
    ports,
    root,
    runbooks,
    shards,
    vendor,
    volumes,
)
from ingot.api.web import description
from ingot.api.web.collection import without_ident
from ingot.api.web.operations import Operation
from ingot.common import errors

_HIDDEN = {"GET": 404, "*": 404}
"""A resource that is newer than the request's version: as if it were not there."""

_HIDDEN_405 = {"GET": 404, "*": 405}
_HIDDEN_GET_405 = {"GET": 405, "*": 404}
_HIDDEN_406 = {"GET": 406, "PUT": 405, "DELETE": 404, "*": 406}

_NOT_ACCEPTABLE = {"*": 406}

_ACTIONS = {"GET": "get", "POST": "create", "PATCH": "update", "DELETE": "delete"}
"""By method, the action in the name of the rule for it."""

_REFUSALS: Mapping[int, type[errors.IngotError]] = {
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    406: errors.VersionRefused,
}


class Route(NamedTuple):
    """A URL.

    :param operations: by method.
    :param since: minor version that brought it.
    :param below: what older requests get, by method.
    :param public: whether it needs no authentication.
    :param any_version: whether it does not care about the request's version.
    :param text: whether it answers plain text or an archive, and so does not look for JSON in ``Accept``.
    :param first: what refuses those who may not use it, even with a version that it is newer than; everywhere else the
        version comes first.
    :param policy: the rule of policy for its operations, or one for each method; see :mod:`ingot.api.auth.rules`.
    """

    path: str
    operations: Mapping[str, Operation]
    since: int = 1
    below: Mapping[str, int] = _HIDDEN
    public: bool = False
    any_version: bool = False
    text: bool = False
    first: Callable[..., object] | None = None
    policy: str | Mapping[str, str] = ""

    @property
    def tagged(self) -> bool:
        """Whether writing to it is writing to one object, which has an entity tag."""
        return not self.public and ("<node>" in self.path or "<ident>" in self.path)

    def rule(self, method: str) -> str:
        """The rule for an operation. One without a rule is for nobody."""
        return self.policy if isinstance(self.policy, str) else self.policy.get(method, "")

    def too_new(self, method: str) -> errors.IngotError:
        """The error for a request of an older version."""
        refusal = _REFUSALS[self.below.get(method, self.below["*"])]
        return refusal(f"{method} {self.path} needs API version 1.{self.needs(method)} or newer.")

    def needs(self, method: str) -> int:
        """The minor version that brought a method of it; for one that nobody serves, the URL itself."""
        operation = self.operations.get(method)
        return max(self.since, operation.since) if operation else self.since


class _Served(Protocol):
    """What can be done with a resource: a :class:`ingot.api.web.crud.Crud`, or a module."""

    index: Operation
    detail: Operation
    create: Operation
    show: Operation
    update: Operation
    delete: Operation


def _resource(
    path: str,
    served: _Served,
    noun: str,
    since: int = 1,
    below: Mapping[str, int] = _HIDDEN,
    detail: bool = False,
    **other: Operation,
) -> tuple[Route, ...]:
    """The URLs of a resource: its collection, if it has one the list with all details, and one object.

    :param noun: the resource in the names of rules; one with a rule for lists is one of which everybody has their own.
    :param detail: whether there is a list at .../detail.
    :param other: operations in place of those that are served: ``create``, ``update``, and ``clear`` for DELETE of the
        collection.
    """
    rules = {method: f"baremetal:{noun}:{action}" for method, action in _ACTIONS.items()}
    listing = f"baremetal:{noun}:list" if f"baremetal:{noun}:list" in RULES else rules["GET"]
    every = {"GET": served.index, "POST": other.get("create", served.create), "PATCH": without_ident}
    every["DELETE"] = other.get("clear", without_ident)
    one = {"GET": served.show, "PATCH": other.get("update", served.update), "DELETE": served.delete}
    in_detail = (Route(f"{path}/detail", {"GET": served.detail}, since, below, policy=listing),) if detail else ()
    return (
        Route(path, every, since, below, policy={**rules, "GET": listing}),
        *in_detail,
        Route(f"{path}/<{'node' if noun == 'node' else 'ident'}>", one, since, below, policy=rules),
    )


ROUTES: tuple[Route, ...] = (
    Route("/", {"GET": root.service}, public=True, any_version=True),
    Route("/v1", {"GET": root.version_1}, public=True),
    # what machines and their agents ask for
    Route("/boot/ipxe/<mac>", {"GET": boot.ipxe}, public=True, any_version=True, text=True),
    Route("/boot/images/<node>/<ticket>/<image>", {"GET": boot.image}, public=True, any_version=True, text=True),
    Route("/v1/lookup", {"GET": agents.lookup}, 22, public=True),
    Route("/v1/heartbeat", {"POST": without_ident}, 22, public=True),
    Route("/v1/heartbeat/<node>", {"POST": agents.heartbeat}, 22, public=True),
    Route("/v1/continue_inspection", {"POST": agents.continue_inspection}, public=True),
    # nodes
    *_resource("/v1/nodes", nodes, "node", detail=True),
    Route("/v1/nodes/validate", {"GET": management.validate_by_query}, policy="baremetal:node:validate"),
    Route("/v1/nodes/<node>/states", {"GET": node_states.show}, policy="baremetal:node:get_states"),
    Route("/v1/nodes/<node>/states/power", {"PUT": node_states.set_power}, policy="baremetal:node:set_power_state"),
    Route(
        "/v1/nodes/<node>/states/provision",
        {"PUT": provision.set_provision},
        policy="baremetal:node:set_provision_state",
    ),
    Route(
        "/v1/nodes/<node>/states/console",
        {"GET": management.show_console, "PUT": management.set_console},
        policy={"GET": "baremetal:node:get_console", "PUT": "baremetal:node:set_console_state"},
    ),
    Route(
        "/v1/nodes/states/console/<node>", {"GET": management.show_console}, policy="baremetal:node:get_console"
    ),  # as tempest spells it
    Route(
        "/v1/nodes/<node>/states/boot_mode",
        {"PUT": management.set_boot_mode},
        76,
        first=nodes.may,
        policy="baremetal:node:set_boot_mode",
    ),
    Route(
        "/v1/nodes/<node>/states/secure_boot",
        {"PUT": management.set_secure_boot},
        76,
        first=nodes.may,
        policy="baremetal:node:set_secure_boot",
    ),
    Route(
        "/v1/nodes/<node>/states/raid",
        {"PUT": node_states.set_raid},
        12,
        _NOT_ACCEPTABLE,
        policy="baremetal:node:set_raid_state",
    ),
    Route(
        "/v1/nodes/<node>/maintenance",
        {"PUT": maintenance.set_flag, "DELETE": maintenance.clear_flag},
        policy={"PUT": "baremetal:node:set_maintenance", "DELETE": "baremetal:node:clear_maintenance"},
    ),
    Route(
        "/v1/nodes/<node>/management/boot_device",
        {"GET": management.show_boot_device, "PUT": management.set_boot_device},
        policy={"GET": "baremetal:node:get_boot_device", "PUT": "baremetal:node:set_boot_device"},
    ),
    Route(
        "/v1/nodes/<node>/management/boot_device/supported",
        {"GET": management.list_boot_devices},
        policy="baremetal:node:get_boot_device",
    ),
    Route("/v1/nodes/<node>/management", {}),
    Route(
        "/v1/nodes/<node>/management/inject_nmi",
        {"PUT": management.inject_nmi},
        29,
        policy="baremetal:node:inject_nmi",
    ),
    Route(
        "/v1/nodes/<node>/management/indicators",
        {"GET": management.list_indicators},
        policy="baremetal:node:get_indicator_state",
    ),
    Route(
        "/v1/nodes/<node>/management/indicators/<name>",
        {"GET": management.show_indicator, "PUT": management.set_indicator},
        policy={"GET": "baremetal:node:get_indicator_state", "PUT": "baremetal:node:set_indicator_state"},
    ),
    Route(
        "/v1/nodes/<node>/management/indicators/<component>/<name>",
        {"GET": management.show_indicator, "PUT": management.set_indicator},
        policy={"GET": "baremetal:node:get_indicator_state", "PUT": "baremetal:node:set_indicator_state"},
    ),
    Route("/v1/nodes/<node>/validate", {"GET": management.validate}, policy="baremetal:node:validate"),
    Route(
        "/v1/nodes/<node>/cleaning/steps", {"GET": management.list_cleaning_steps}, policy="ingot:node:clean_steps:get"
    ),
    Route(
        "/v1/nodes/<node>/traits",
        {"GET": node_traits.index, "PUT": node_traits.replace, "DELETE": node_traits.clear},
        37,
        _HIDDEN_406,
        policy={
            "GET": "baremetal:node:traits:list",
            "PUT": "baremetal:node:traits:set",
            "DELETE": "baremetal:node:traits:delete",
        },
    ),
    Route(
        "/v1/nodes/<node>/traits/<trait>",
        {"PUT": node_traits.add, "DELETE": node_traits.remove},
        37,
        _HIDDEN_406,
        policy={"PUT": "baremetal:node:traits:set", "DELETE": "baremetal:node:traits:delete"},
    ),
    Route("/v1/nodes/<node>/history", {"GET": node_history.index}, 78, policy="baremetal:node:history:get"),
    Route("/v1/nodes/<node>/history/<uuid>", {"GET": node_history.show}, 78, policy="baremetal:node:history:get"),
    Route("/v1/nodes/<node>/bios", {"GET": node_bios.index}, node_bios.SINCE, policy="baremetal:node:bios:get"),
    Route("/v1/nodes/<node>/bios/<name>", {"GET": node_bios.show}, node_bios.SINCE, policy="baremetal:node:bios:get"),
    Route(
        "/v1/nodes/<node>/firmware",
        {"GET": node_firmware.index},
        node_firmware.SINCE,
        policy="baremetal:node:firmware:get",
    ),
    Route("/v1/nodes/<node>/inventory", {"GET": node_inventory.show}, 81, policy="baremetal:node:inventory:get"),
    Route("/v1/nodes/<node>/children", {"GET": children.index}, 83, policy="baremetal:node:get"),
    Route(
        "/v1/nodes/<node>/vifs",
        {"GET": management.list_vifs, "POST": management.attach_vif},
        28,
        policy={"GET": "baremetal:node:vif:list", "POST": "baremetal:node:vif:attach"},
    ),
    Route("/v1/nodes/<node>/vifs/<vif>", {"DELETE": management.detach_vif}, 28, policy="baremetal:node:vif:detach"),
    Route(
        "/v1/nodes/<node>/vmedia",
        {"GET": management.show_vmedia, "POST": management.attach_vmedia, "DELETE": management.detach_vmedia},
        89,
        policy={
            "GET": "baremetal:node:vmedia:get",
            "POST": "baremetal:node:vmedia:attach",
            "DELETE": "baremetal:node:vmedia:detach",
        },
    ),
    Route(
        "/v1/nodes/<node>/vendor_passthru/methods",
        {"GET": vendor.methods_of_node},
        policy="baremetal:node:vendor_passthru",
    ),
    Route("/v1/nodes/<node>/vendor_passthru", vendor.NODE_BY_QUERY, policy="baremetal:node:vendor_passthru"),
    Route("/v1/nodes/<node>/vendor_passthru/<method>", vendor.NODE_BY_PATH, policy="baremetal:node:vendor_passthru"),
    Route("/v1/nodes/<node>/ports", {"GET": ports.of_node}, policy="baremetal:port:list"),
    Route("/v1/nodes/<node>/ports/detail", {"GET": ports.of_node_in_detail}, policy="baremetal:port:list"),
    Route("/v1/nodes/<node>/portgroups", {"GET": portgroups.of_node}, 24, policy="baremetal:portgroup:list"),
    Route(
        "/v1/nodes/<node>/portgroups/detail",
        {"GET": portgroups.of_node_in_detail},
        24,
        policy="baremetal:portgroup:list",
    ),
    # ports and portgroups
    *_resource("/v1/ports", ports.CRUD, "port", detail=True),
    *_resource("/v1/portgroups", portgroups.CRUD, "portgroup", 23, detail=True),
    Route("/v1/portgroups/<ident>/ports", {"GET": ports.of_portgroup}, 24, policy="baremetal:port:list"),
    Route(
        "/v1/portgroups/<ident>/ports/detail", {"GET": ports.of_portgroup_in_detail}, 24, policy="baremetal:port:list"
    ),
    # volumes
    Route("/v1/volume", {"GET": volumes.root}, volumes.SINCE, policy="baremetal:volume:get"),
    *_resource("/v1/volume/connectors", volumes.CONNECTORS, "volume", volumes.SINCE),
    *_resource("/v1/volume/targets", volumes.TARGETS, "volume", volumes.SINCE),
    Route("/v1/nodes/<node>/volume", {"GET": volumes.root_of_node}, volumes.SINCE, policy="baremetal:volume:get"),
    Route(
        "/v1/nodes/<node>/volume/connectors",
        {"GET": volumes.connectors_of_node},
        volumes.SINCE,
        policy="baremetal:volume:list",
    ),
    Route(
        "/v1/nodes/<node>/volume/targets",
        {"GET": volumes.targets_of_node},
        volumes.SINCE,
        policy="baremetal:volume:list",
    ),
    # chassis
    *_resource("/v1/chassis", chassis.CRUD, "chassis", detail=True),
    Route("/v1/chassis/<ident>/nodes", {"GET": chassis.nodes_in}, policy="baremetal:node:list"),
    Route("/v1/chassis/<ident>/nodes/detail", {"GET": chassis.nodes_in_detail}, policy="baremetal:node:list"),
    # shards, inspection rules, events of a network service
    Route("/v1/shards", {"GET": shards.index}, 82, policy="baremetal:shards:get"),
    *_resource(
        "/v1/inspection_rules",
        inspection_rules.CRUD,
        "inspection_rule",
        inspection_rules.SINCE,
        _HIDDEN_405,
        clear=inspection_rules.delete_all,
    ),
    Route(
        "/v1/events",
        {"POST": network_events.create},
        network_events.SINCE,
        _HIDDEN_GET_405,
        policy="baremetal:events:post",
    ),
    # allocations
    *_resource(
        "/v1/allocations",
        allocations.CRUD,
        "allocation",
        allocations.SINCE,
        _HIDDEN_405,
        create=allocations.create,
        update=allocations.UPDATE,
    ),
    Route(
        "/v1/nodes/<node>/allocation",
        {"GET": allocations.of_node, "DELETE": allocations.delete_of_node},
        allocations.SINCE,
        policy={"GET": "baremetal:allocation:get", "DELETE": "baremetal:allocation:delete"},
    ),
    # deploy templates; with a hyphen as specification 003 has it
    *_resource("/v1/deploy_templates", deploy_templates.CRUD, "deploy_template", 55, _HIDDEN_405),
    *_resource("/v1/deploy-templates", deploy_templates.HYPHENATED, "deploy_template", 55, _HIDDEN_405),
    # runbooks
    *_resource("/v1/runbooks", runbooks.CRUD, "runbook", 92, _HIDDEN_405),
    Route(
        "/v1/runbooks/<ident>/traits",
        {"GET": runbooks.traits_index, "PUT": runbooks.traits_replace, "DELETE": runbooks.traits_clear},
        112,
        policy={
            "GET": "baremetal:runbook:get",
            "PUT": "baremetal:runbook:update",
            "DELETE": "baremetal:runbook:update",
        },
    ),
    Route(
        "/v1/runbooks/<ident>/traits/<trait>",
        {"PUT": runbooks.traits_add, "DELETE": runbooks.traits_remove},
        112,
        policy="baremetal:runbook:update",
    ),
    # drivers and conductors
    Route("/v1/drivers", {"GET": drivers.index}, policy="baremetal:driver:get"),
    Route("/v1/drivers/<name>", {"GET": drivers.show}, policy="baremetal:driver:get"),
    Route("/v1/drivers/<name>/properties", {"GET": drivers.properties}, policy="baremetal:driver:get_properties"),
    Route(
        "/v1/drivers/<name>/raid/logical_disk_properties",
        {"GET": drivers.logical_disk_properties},
        12,
        _HIDDEN_406,
        policy="baremetal:driver:get_raid_logical_disk_properties",
    ),
    Route(
        "/v1/drivers/<name>/vendor_passthru/methods", {"GET": vendor.methods}, policy="baremetal:driver:vendor_passthru"
    ),
    Route("/v1/drivers/<name>/vendor_passthru", vendor.BY_QUERY, policy="baremetal:driver:vendor_passthru"),
    Route("/v1/drivers/<name>/vendor_passthru/<method>", vendor.BY_PATH, policy="baremetal:driver:vendor_passthru"),
    Route("/v1/conductors", {"GET": conductors.index}, 49, policy="baremetal:conductor:get"),
    Route("/v1/conductors/<hostname>", {"GET": conductors.show}, 49, policy="baremetal:conductor:get"),
    # Ingot's own
    Route(
        "/ingot/v1/nodes/<node>/plan",
        {"GET": plan.show, "POST": plan.create},
        any_version=True,
        policy="ingot:node:plan:get",
    ),
    Route(
        "/ingot/v1/nodes/<node>/timeline", {"GET": timeline.show}, any_version=True, policy="ingot:node:timeline:get"
    ),
    Route("/ingot/v1/nodes/<node>/runs", {"GET": timeline.runs}, any_version=True, policy="ingot:node:timeline:get"),
    Route("/ingot/v1/nodes/<node>/logs", {"GET": agent_logs.index}, any_version=True, policy="ingot:node:logs:get"),
    Route(
        "/ingot/v1/nodes/<node>/logs/<uuid>",
        {"GET": agent_logs.show},
        any_version=True,
        text=True,
        policy="ingot:node:logs:get",
    ),
    Route(
        "/ingot/v1/nodes/<node>/maintenance",
        {"GET": maintenance.index},
        any_version=True,
        policy="ingot:node:maintenance:get",
    ),
    Route(
        "/ingot/v1/nodes/<node>/maintenance/<hold>",
        {"GET": maintenance.show, "PUT": maintenance.put, "DELETE": maintenance.delete},
        any_version=True,
        policy={
            "GET": "ingot:node:maintenance:get",
            "PUT": "baremetal:node:set_maintenance",
            "DELETE": "baremetal:node:clear_maintenance",
        },
    ),
    Route("/ingot/v1/runs/<run>", {"GET": timeline.run}, any_version=True, policy="ingot:run:get"),
    Route("/ingot/v1/events", {"GET": events.follow}, any_version=True, text=True, policy="ingot:events:get"),
    Route("/ingot/v1/bulk", {"POST": bulk.create}, any_version=True, policy="ingot:bulk:create"),
    Route(
        description.PATH,
        {"GET": description.show(lambda: ROUTES)},
        any_version=True,
        policy="ingot:description:get",
    ),
)
