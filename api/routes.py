"""All routes: URLs, their methods, and the versions that brought them. 405 and ``Allow`` come from this table."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from ingot.api.agents import agent_logs, agents, boot
from ingot.api.auth.rules import RULES
from ingot.api.nodes import (
    bulk,
    history,
    inventory,
    maintenance,
    management,
    node_states,
    nodes,
    plan,
    provision,
    traits,
)
from ingot.api.resources import (
    allocations,
    chassis,
    conductors,
    deploy_templates,
    drivers,
    events,
    inspection_rules,
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
    :param any_version: whether the request's version does not matter.
    :param text: whether it answers plain text or an archive, so that ``Accept`` need not allow JSON.
    :param first: what refuses users who may not use it, even where it is newer than the version of the request;
        everywhere else the version is checked first.
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
        """Return the rule for an operation; no user may use one without a rule."""
        return self.policy if isinstance(self.policy, str) else self.policy.get(method, "")

    def too_new_error(self, method: str) -> errors.IngotError:
        """Return the error for a request of an older version."""
        refusal = _REFUSALS[self.below.get(method, self.below["*"])]
        return refusal(f"{method} {self.path} needs API version 1.{self.required_version(method)} or newer.")

    def required_version(self, method: str) -> int:
        """Return the minor version that brought a method of it; for a method that it does not have, the URL itself."""
        operation = self.operations.get(method)
        return max(self.since, operation.since) if operation else self.since


class _Resource(Protocol):
    """The operations of a resource: a :class:`ingot.api.web.crud.Crud`, or a module."""

    index: Operation
    detail: Operation
    create: Operation
    show: Operation
    update: Operation
    delete: Operation


def _build_routes(
    path: str,
    served: _Resource,
    noun: str,
    since: int = 1,
    below: Mapping[str, int] = _HIDDEN,
    detail: bool = False,
    **other: Operation,
) -> tuple[Route, ...]:
    """Return the URLs of a resource: its collection, if it has one the list with all details, and one object.

    :param noun: the resource in the names of rules; there is a rule for lists where projects own its objects.
    :param detail: whether there is a list at .../detail.
    :param other: operations in place of those of the resource: ``create``, ``update``, and ``clear`` for DELETE of the
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


def _v1(
    path: str,
    operations: Mapping[str, Operation],
    rules: str | Mapping[str, str],
    since: int = 1,
    below: Mapping[str, int] = _HIDDEN,
    first: Callable[..., object] | None = None,
) -> Route:
    """Return a URL under /v1.

    :param rules: the rule of policy for its operations, or one for each method, without the prefix ``baremetal:``.
    """
    return Route(f"/v1/{path}", operations, since, below, first=first, policy=_add_prefix("baremetal", rules))


def _own(path: str, operations: Mapping[str, Operation], rules: str, text: bool = False) -> Route:
    """Return a URL under /ingot/v1, which has no versions.

    :param rules: as in :func:`_v1`, without the prefix ``ingot:``.
    """
    return Route(f"/ingot/v1/{path}", operations, any_version=True, text=text, policy=_add_prefix("ingot", rules))


def _add_prefix(service: str, rules: str | Mapping[str, str]) -> str | Mapping[str, str]:
    if isinstance(rules, str):
        return f"{service}:{rules}"
    return {method: f"{service}:{rule}" for method, rule in rules.items()}


ROUTES: tuple[Route, ...] = (
    Route("/", {"GET": root.service}, public=True, any_version=True),
    Route("/v1", {"GET": root.version_1}, public=True),
    # requests of machines and their agents
    Route("/boot/ipxe/<mac>", {"GET": boot.ipxe}, public=True, any_version=True, text=True),
    Route("/boot/images/<node>/<ticket>/<image>", {"GET": boot.image}, public=True, any_version=True, text=True),
    Route("/v1/lookup", {"GET": agents.lookup}, 22, public=True),
    Route("/v1/heartbeat", {"POST": without_ident}, 22, public=True),
    Route("/v1/heartbeat/<node>", {"POST": agents.heartbeat}, 22, public=True),
    Route("/v1/continue_inspection", {"POST": agents.continue_inspection}, public=True),
    # nodes
    *_build_routes("/v1/nodes", nodes, "node", detail=True),
    _v1("nodes/validate", {"GET": management.validate_by_query}, "node:validate"),
    _v1("nodes/<node>/states", {"GET": node_states.show}, "node:get_states"),
    _v1("nodes/<node>/states/power", {"PUT": node_states.set_power}, "node:set_power_state"),
    _v1("nodes/<node>/states/provision", {"PUT": provision.set_provision}, "node:set_provision_state"),
    _v1(
        "nodes/<node>/states/console",
        {"GET": management.show_console, "PUT": management.set_console},
        {"GET": "node:get_console", "PUT": "node:set_console_state"},
    ),
    _v1("nodes/states/console/<node>", {"GET": management.show_console}, "node:get_console"),
    _v1(
        "nodes/<node>/states/boot_mode",
        {"PUT": management.set_boot_mode},
        "node:set_boot_mode",
        76,
        first=nodes.check_access,
    ),
    _v1(
        "nodes/<node>/states/secure_boot",
        {"PUT": management.set_secure_boot},
        "node:set_secure_boot",
        76,
        first=nodes.check_access,
    ),
    _v1("nodes/<node>/states/raid", {"PUT": node_states.set_raid}, "node:set_raid_state", 12, _NOT_ACCEPTABLE),
    _v1(
        "nodes/<node>/maintenance",
        {"PUT": maintenance.set_flag, "DELETE": maintenance.clear_flag},
        {"PUT": "node:set_maintenance", "DELETE": "node:clear_maintenance"},
    ),
    _v1(
        "nodes/<node>/management/boot_device",
        {"GET": management.show_boot_device, "PUT": management.set_boot_device},
        {"GET": "node:get_boot_device", "PUT": "node:set_boot_device"},
    ),
    _v1("nodes/<node>/management/boot_device/supported", {"GET": management.list_boot_devices}, "node:get_boot_device"),
    Route("/v1/nodes/<node>/management", {}),
    _v1("nodes/<node>/management/inject_nmi", {"PUT": management.inject_nmi}, "node:inject_nmi", 29),
    _v1("nodes/<node>/management/indicators", {"GET": management.list_indicators}, "node:get_indicator_state"),
    _v1(
        "nodes/<node>/management/indicators/<name>",
        {"GET": management.show_indicator, "PUT": management.set_indicator},
        {"GET": "node:get_indicator_state", "PUT": "node:set_indicator_state"},
    ),
    _v1(
        "nodes/<node>/management/indicators/<component>/<name>",
        {"GET": management.show_indicator, "PUT": management.set_indicator},
        {"GET": "node:get_indicator_state", "PUT": "node:set_indicator_state"},
    ),
    _v1("nodes/<node>/validate", {"GET": management.validate}, "node:validate"),
    Route(
        "/v1/nodes/<node>/cleaning/steps", {"GET": management.list_cleaning_steps}, policy="ingot:node:clean_steps:get"
    ),
    _v1(
        "nodes/<node>/traits",
        {"GET": traits.index, "PUT": traits.replace, "DELETE": traits.clear},
        {"GET": "node:traits:list", "PUT": "node:traits:set", "DELETE": "node:traits:delete"},
        37,
        _HIDDEN_406,
    ),
    _v1(
        "nodes/<node>/traits/<trait>",
        {"PUT": traits.add, "DELETE": traits.remove},
        {"PUT": "node:traits:set", "DELETE": "node:traits:delete"},
        37,
        _HIDDEN_406,
    ),
    _v1("nodes/<node>/history", {"GET": history.index}, "node:history:get", 78),
    _v1("nodes/<node>/history/<uuid>", {"GET": history.show}, "node:history:get", 78),
    _v1("nodes/<node>/bios", {"GET": inventory.list_bios}, "node:bios:get", inventory.BIOS_SINCE),
    _v1("nodes/<node>/bios/<name>", {"GET": inventory.show_bios}, "node:bios:get", inventory.BIOS_SINCE),
    _v1("nodes/<node>/firmware", {"GET": inventory.list_firmware}, "node:firmware:get", inventory.FIRMWARE_SINCE),
    _v1("nodes/<node>/inventory", {"GET": inventory.show}, "node:inventory:get", 81),
    _v1("nodes/<node>/children", {"GET": nodes.list_children}, "node:get", 83),
    _v1(
        "nodes/<node>/vifs",
        {"GET": management.list_vifs, "POST": management.attach_vif},
        {"GET": "node:vif:list", "POST": "node:vif:attach"},
        28,
    ),
    _v1("nodes/<node>/vifs/<vif>", {"DELETE": management.detach_vif}, "node:vif:detach", 28),
    _v1(
        "nodes/<node>/vmedia",
        {"GET": management.show_vmedia, "POST": management.attach_vmedia, "DELETE": management.detach_vmedia},
        {"GET": "node:vmedia:get", "POST": "node:vmedia:attach", "DELETE": "node:vmedia:detach"},
        89,
    ),
    _v1("nodes/<node>/vendor_passthru/methods", {"GET": vendor.methods_of_node}, "node:vendor_passthru"),
    _v1("nodes/<node>/vendor_passthru", vendor.NODE_BY_QUERY, "node:vendor_passthru"),
    _v1("nodes/<node>/vendor_passthru/<method>", vendor.NODE_BY_PATH, "node:vendor_passthru"),
    _v1("nodes/<node>/ports", {"GET": ports.of_node}, "port:list"),
    _v1("nodes/<node>/ports/detail", {"GET": ports.of_node_in_detail}, "port:list"),
    _v1("nodes/<node>/portgroups", {"GET": portgroups.of_node}, "portgroup:list", 24),
    _v1("nodes/<node>/portgroups/detail", {"GET": portgroups.of_node_in_detail}, "portgroup:list", 24),
    # ports and portgroups
    *_build_routes("/v1/ports", ports.CRUD, "port", detail=True),
    *_build_routes("/v1/portgroups", portgroups.CRUD, "portgroup", 23, detail=True),
    _v1("portgroups/<ident>/ports", {"GET": ports.of_portgroup}, "port:list", 24),
    _v1("portgroups/<ident>/ports/detail", {"GET": ports.of_portgroup_in_detail}, "port:list", 24),
    # volumes
    _v1("volume", {"GET": volumes.root}, "volume:get", volumes.SINCE),
    *_build_routes("/v1/volume/connectors", volumes.CONNECTORS, "volume", volumes.SINCE),
    *_build_routes("/v1/volume/targets", volumes.TARGETS, "volume", volumes.SINCE),
    _v1("nodes/<node>/volume", {"GET": volumes.root_of_node}, "volume:get", volumes.SINCE),
    _v1("nodes/<node>/volume/connectors", {"GET": volumes.connectors_of_node}, "volume:list", volumes.SINCE),
    _v1("nodes/<node>/volume/targets", {"GET": volumes.targets_of_node}, "volume:list", volumes.SINCE),
    # chassis
    *_build_routes("/v1/chassis", chassis.CRUD, "chassis", detail=True),
    _v1("chassis/<ident>/nodes", {"GET": chassis.nodes_in}, "node:list"),
    _v1("chassis/<ident>/nodes/detail", {"GET": chassis.nodes_in_detail}, "node:list"),
    # shards, inspection rules, events of a network service
    _v1("shards", {"GET": shards.index}, "shards:get", 82),
    *_build_routes(
        "/v1/inspection_rules",
        inspection_rules.CRUD,
        "inspection_rule",
        inspection_rules.SINCE,
        _HIDDEN_405,
        clear=inspection_rules.delete_all,
    ),
    _v1("events", {"POST": events.report}, "events:post", events.REPORTS_SINCE, _HIDDEN_GET_405),
    # allocations
    *_build_routes(
        "/v1/allocations",
        allocations.CRUD,
        "allocation",
        allocations.SINCE,
        _HIDDEN_405,
        create=allocations.create,
        update=allocations.UPDATE,
    ),
    _v1(
        "nodes/<node>/allocation",
        {"GET": allocations.of_node, "DELETE": allocations.delete_of_node},
        {"GET": "allocation:get", "DELETE": "allocation:delete"},
        allocations.SINCE,
    ),
    # deploy templates; with a hyphen as specification 003 has it
    *_build_routes("/v1/deploy_templates", deploy_templates.CRUD, "deploy_template", 55, _HIDDEN_405),
    *_build_routes("/v1/deploy-templates", deploy_templates.HYPHENATED, "deploy_template", 55, _HIDDEN_405),
    # runbooks
    *_build_routes("/v1/runbooks", runbooks.CRUD, "runbook", 92, _HIDDEN_405),
    _v1(
        "runbooks/<ident>/traits",
        {"GET": runbooks.traits_index, "PUT": runbooks.traits_replace, "DELETE": runbooks.traits_clear},
        {"GET": "runbook:get", "PUT": "runbook:update", "DELETE": "runbook:update"},
        112,
    ),
    _v1(
        "runbooks/<ident>/traits/<trait>",
        {"PUT": runbooks.traits_add, "DELETE": runbooks.traits_remove},
        "runbook:update",
        112,
    ),
    # drivers and conductors
    _v1("drivers", {"GET": drivers.index}, "driver:get"),
    _v1("drivers/<name>", {"GET": drivers.show}, "driver:get"),
    _v1("drivers/<name>/properties", {"GET": drivers.properties}, "driver:get_properties"),
    _v1(
        "drivers/<name>/raid/logical_disk_properties",
        {"GET": drivers.logical_disk_properties},
        "driver:get_raid_logical_disk_properties",
        12,
        _HIDDEN_406,
    ),
    _v1("drivers/<name>/vendor_passthru/methods", {"GET": vendor.methods}, "driver:vendor_passthru"),
    _v1("drivers/<name>/vendor_passthru", vendor.BY_QUERY, "driver:vendor_passthru"),
    _v1("drivers/<name>/vendor_passthru/<method>", vendor.BY_PATH, "driver:vendor_passthru"),
    _v1("conductors", {"GET": conductors.index}, "conductor:get", 49),
    _v1("conductors/<hostname>", {"GET": conductors.show}, "conductor:get", 49),
    # Ingot's own
    _own("nodes/<node>/plan", {"GET": plan.show, "POST": plan.create}, "node:plan:get"),
    _own("nodes/<node>/timeline", {"GET": history.show_timeline}, "node:timeline:get"),
    _own("nodes/<node>/runs", {"GET": history.list_runs}, "node:timeline:get"),
    _own("nodes/<node>/logs", {"GET": agent_logs.index}, "node:logs:get"),
    _own("nodes/<node>/logs/<uuid>", {"GET": agent_logs.show}, "node:logs:get", text=True),
    _own("nodes/<node>/maintenance", {"GET": maintenance.index}, "node:maintenance:get"),
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
    _own("runs/<run>", {"GET": history.show_run}, "run:get"),
    _own("events", {"GET": events.follow}, "events:get", text=True),
    _own("bulk", {"POST": bulk.create}, "bulk:create"),
    Route(
        description.PATH, {"GET": description.show(lambda: ROUTES)}, any_version=True, policy="ingot:description:get"
    ),
)
