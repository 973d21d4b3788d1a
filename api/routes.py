"""All routes: URLs, their methods, and the versions that brought them. 405 and ``Allow`` come from this table."""

from collections.abc import Callable, Mapping
from typing import Protocol

from ingot.api.agents import agents, boot, boot_entry, boot_media
from ingot.api.auth import sessions
from ingot.api.auth.rules import RULES
from ingot.api.nodes import (
    bulk,
    console,
    fleet,
    history,
    inventory,
    maintenance,
    management,
    node_states,
    nodes,
    overdue,
    overview,
    provision,
)
from ingot.api.resources import (
    allocations,
    audit,
    chassis,
    conductors,
    drivers,
    events,
    health,
    inbox,
    inspection_rules,
    permissions,
    ports,
    root,
    session,
    step_lists,
    vendor,
    volumes,
)
from ingot.api.web import description
from ingot.api.web.collection import build_without_ident
from ingot.api.web.operations import Operation, Route

_HIDDEN = {"GET": 404, "*": 404}
"""A resource that is newer than the request's version: as if it were not there."""

_HIDDEN_405 = {"GET": 404, "*": 405}
_HIDDEN_GET_405 = {"GET": 405, "*": 404}
_HIDDEN_406 = {"GET": 406, "PUT": 405, "DELETE": 404, "*": 406}

_NOT_ACCEPTABLE = {"*": 406}

_ACTIONS = {"GET": "get", "POST": "create", "PATCH": "update", "DELETE": "delete"}
"""By method, the action in the name of the rule for it."""

_IDENTS = {
    "ports": "port_uuid",
    "chassis": "chassis_uuid",
    "volume/connectors": "connector_uuid",
    "volume/targets": "target_uuid",
    "deploy_templates": "template_ident",
    "deploy-templates": "template_ident",
    "inspection_rules": "inspection_rule_uuid",
}
"""What clients call the part of a URL that names one object, where it is not ``<noun>_ident``."""

_TRAITS = {"GET": "node:traits:list", "PUT": "node:traits:set", "DELETE": "node:traits:delete"}


def serve(
    path: str,
    operations: Mapping[str, Operation],
    rules: str | Mapping[str, str] = "",
    since: int = 1,
    below: Mapping[str, int] = _HIDDEN,
    public: bool = False,
    first: Callable[..., object] | None = None,
) -> Route:
    """Return a URL, each of whose operations knows its rule and the version that brought it.

    :param path: below /v1, unless it begins with a slash.
    :param rules: the rule of policy for all operations, or one for each method: those of ``ingot:`` in full, others
        without ``baremetal:``. No user may use an operation without a rule, unless it is public.
    """
    served = {}
    for method, operation in operations.items():
        rule = rules if isinstance(rules, str) else rules[method]
        named = rule if rule.startswith("ingot:") else f"baremetal:{rule}"
        served[method] = operation._replace(since=max(since, operation.since), rule=named)
    path = path if path.startswith("/") else f"/v1/{path}"
    return Route(path, served, since, below, public, not path.startswith("/v1"), first)


def serve_machines(path: str, operations: Mapping[str, Operation], since: int = 1) -> Route:
    """Return a URL that booting machines and their agents ask for; they have no credentials."""
    return serve(path, operations, since=since, public=True)._replace(for_machines=True)


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
    clear: Operation | None = None,
) -> tuple[Route, ...]:
    """Return the URLs of a resource: its collection, if it has one the list with all details, and one object.

    :param noun: the resource in the names of rules; there is a rule for lists where projects own its objects.
    :param detail: whether there is a list at .../detail.
    :param clear: DELETE of the collection, if it can be.
    """
    without_ident = build_without_ident(_IDENTS.get(path, f"{noun}_ident"))
    rules = {method: f"{noun}:{action}" for method, action in _ACTIONS.items()}
    listing = f"{noun}:list" if f"baremetal:{noun}:list" in RULES else rules["GET"]
    every = {"GET": served.index, "POST": served.create, "PATCH": without_ident, "DELETE": clear or without_ident}
    one = {"GET": served.show, "PATCH": served.update, "DELETE": served.delete}
    return (
        serve(path, every, {**rules, "GET": listing}, since, below),
        *((serve(f"{path}/detail", {"GET": served.detail}, listing, since, below),) if detail else ()),
        serve(f"{path}/<{'node' if noun == 'node' else 'ident'}>", one, rules, since, below),
    )


ROUTES: tuple[Route, ...] = (
    serve("/", {"GET": root.service}, public=True),
    serve("/v1", {"GET": root.version_1}, public=True),
    serve("/healthcheck", {"GET": health.show}, public=True),
    # requests of machines and their agents
    serve_machines("/boot.ipxe", {"GET": boot_entry.first_script}),
    serve_machines("/boot/loaders/<name>", {"GET": boot_entry.loader}),
    serve_machines("/boot/settings.cpio", {"GET": boot_entry.agent_settings}),
    serve_machines("/boot/ipxe/<mac>", {"GET": boot.ipxe}),
    serve_machines("/boot/grub/grub.cfg-01-<mac>", {"GET": boot.grub}),
    serve_machines("/boot/pxelinux/pxelinux.cfg/01-<mac>", {"GET": boot.pxelinux}),
    serve_machines("/boot/petitboot/pxelinux.cfg/01-<mac>", {"GET": boot.petitboot}),
    serve_machines("/boot/images/<node>/<ticket>/<image>", {"GET": boot.image}),
    serve_machines("/boot/media/<node>/<ticket>/boot.iso", {"GET": boot_media.image}),
    serve_machines("/boot/media/<node>/<ticket>/config.img", {"GET": boot_media.second}),
    serve_machines("/boot/volumes/<node>/<ticket>", {"GET": boot.volume}),
    serve_machines("lookup", {"GET": agents.lookup}, since=22),
    serve_machines("heartbeat", {"POST": build_without_ident("node_ident")}, since=22),
    serve_machines("heartbeat/<node>", {"POST": agents.heartbeat}, since=22),
    serve_machines("continue_inspection", {"POST": agents.continue_inspection}),
    # nodes
    *_build_routes("nodes", nodes, "node", detail=True),
    serve("nodes/validate", {"GET": management.validate_by_query}, "node:validate"),
    serve("nodes/<node>/states", {"GET": node_states.show}, "node:get_states"),
    serve("nodes/<node>/states/power", {"PUT": node_states.set_power}, "node:set_power_state"),
    serve("nodes/<node>/states/provision", {"PUT": provision.set_provision}, "node:set_provision_state"),
    serve(
        "nodes/<node>/states/console",
        {"GET": management.show_console, "PUT": management.set_console},
        {"GET": "node:get_console", "PUT": "node:set_console_state"},
    ),
    serve("nodes/states/console/<node>", {"GET": management.show_console}, "node:get_console"),
    *(
        serve(f"nodes/<node>/states/{name}", {"PUT": set_it}, f"node:set_{name}", 76, first=nodes.read)
        for name, set_it in (("boot_mode", management.set_boot_mode), ("secure_boot", management.set_secure_boot))
    ),
    serve("nodes/<node>/states/raid", {"PUT": node_states.set_raid}, "node:set_raid_state", 12, _NOT_ACCEPTABLE),
    serve(
        "nodes/<node>/maintenance",
        {"PUT": maintenance.set_flag, "DELETE": maintenance.clear_flag},
        {"PUT": "node:set_maintenance", "DELETE": "node:clear_maintenance"},
    ),
    serve(
        "nodes/<node>/management/boot_device",
        {"GET": management.show_boot_device, "PUT": management.set_boot_device},
        {"GET": "node:get_boot_device", "PUT": "node:set_boot_device"},
    ),
    serve(
        "nodes/<node>/management/boot_device/supported", {"GET": management.list_boot_devices}, "node:get_boot_device"
    ),
    serve("nodes/<node>/management", {}),
    serve("nodes/<node>/management/inject_nmi", {"PUT": management.inject_nmi}, "node:inject_nmi", 29),
    serve("nodes/<node>/management/indicators", {"GET": management.list_indicators}, "node:get_indicator_state"),
    *(
        serve(
            f"nodes/<node>/management/indicators/{ident}",
            {"GET": management.show_indicator, "PUT": management.set_indicator},
            {"GET": "node:get_indicator_state", "PUT": "node:set_indicator_state"},
        )
        for ident in ("<name>", "<component>/<name>")
    ),
    serve("nodes/<node>/validate", {"GET": management.validate}, "node:validate"),
    serve("nodes/<node>/cleaning/steps", {"GET": management.list_cleaning_steps}, "ingot:node:clean_steps:get"),
    serve("nodes/<node>/traits", nodes.TRAITS.every, _TRAITS, 37, _HIDDEN_406),
    serve("nodes/<node>/traits/<trait>", nodes.TRAITS.one, _TRAITS, 37, _HIDDEN_406),
    serve("nodes/<node>/history", {"GET": history.index}, "node:history:get", 78),
    serve("nodes/<node>/history/<uuid>", {"GET": history.show}, "node:history:get", 78),
    serve("nodes/<node>/bios", {"GET": inventory.list_bios}, "node:bios:get", inventory.BIOS_SINCE),
    serve("nodes/<node>/bios/<name>", {"GET": inventory.show_bios}, "node:bios:get", inventory.BIOS_SINCE),
    serve("nodes/<node>/firmware", {"GET": inventory.list_firmware}, "node:firmware:get", inventory.FIRMWARE_SINCE),
    serve("nodes/<node>/inventory", {"GET": inventory.show}, "node:inventory:get", 81),
    serve("nodes/<node>/children", {"GET": nodes.list_children}, "node:get", 83),
    serve(
        "nodes/<node>/vifs",
        {"GET": management.list_vifs, "POST": management.attach_vif, "DELETE": management.detach_unnamed_vif},
        {"GET": "node:vif:list", "POST": "node:vif:attach", "DELETE": "node:vif:detach"},
        28,
    ),
    serve("nodes/<node>/vifs/<vif>", {"DELETE": management.detach_vif}, "node:vif:detach", 28),
    serve(
        "nodes/<node>/vmedia",
        {"GET": management.show_vmedia, "POST": management.attach_vmedia, "DELETE": management.detach_vmedia},
        {"GET": "node:vmedia:get", "POST": "node:vmedia:attach", "DELETE": "node:vmedia:detach"},
        89,
    ),
    serve("nodes/<node>/vendor_passthru/methods", {"GET": vendor.methods_of_node}, "node:vendor_passthru"),
    serve("nodes/<node>/vendor_passthru", vendor.NODE_BY_QUERY, "node:vendor_passthru"),
    serve("nodes/<node>/vendor_passthru/<method>", vendor.NODE_BY_PATH, "node:vendor_passthru"),
    serve("nodes/<node>/ports", {"GET": ports.of_node}, "port:list"),
    serve("nodes/<node>/ports/detail", {"GET": ports.of_node_in_detail}, "port:list"),
    serve("nodes/<node>/portgroups", {"GET": ports.portgroups_of_node}, "portgroup:list", 24),
    serve("nodes/<node>/portgroups/detail", {"GET": ports.portgroups_of_node_in_detail}, "portgroup:list", 24),
    # ports and portgroups
    *_build_routes("ports", ports.PORTS, "port", detail=True),
    *_build_routes("portgroups", ports.PORTGROUPS, "portgroup", 23, detail=True),
    serve("portgroups/<ident>/ports", {"GET": ports.of_portgroup}, "port:list", 24),
    serve("portgroups/<ident>/ports/detail", {"GET": ports.of_portgroup_in_detail}, "port:list", 24),
    # volumes
    serve("volume", {"GET": volumes.root}, "volume:get", volumes.SINCE),
    *_build_routes("volume/connectors", volumes.CONNECTORS, "volume", volumes.SINCE),
    *_build_routes("volume/targets", volumes.TARGETS, "volume", volumes.SINCE),
    serve("nodes/<node>/volume", {"GET": volumes.root_of_node}, "volume:get", volumes.SINCE),
    serve("nodes/<node>/volume/connectors", {"GET": volumes.connectors_of_node}, "volume:list", volumes.SINCE),
    serve("nodes/<node>/volume/targets", {"GET": volumes.targets_of_node}, "volume:list", volumes.SINCE),
    # chassis
    *_build_routes("chassis", chassis.CRUD, "chassis", detail=True),
    serve("chassis/<ident>/nodes", {"GET": chassis.nodes_in}, "node:list"),
    serve("chassis/<ident>/nodes/detail", {"GET": chassis.nodes_in_detail}, "node:list"),
    # shards, inspection rules, events of a network service
    serve("shards", {"GET": chassis.index}, "shards:get", 82),
    *_build_routes(
        "inspection_rules",
        inspection_rules.CRUD,
        "inspection_rule",
        inspection_rules.SINCE,
        _HIDDEN_405,
        clear=inspection_rules.delete_all,
    ),
    serve("events", {"POST": events.report}, "events:post", events.REPORTS_SINCE, _HIDDEN_GET_405),
    # allocations
    *_build_routes("allocations", allocations.CRUD, "allocation", allocations.SINCE, _HIDDEN_405),
    serve(
        "nodes/<node>/allocation",
        {"GET": allocations.of_node, "DELETE": allocations.delete_of_node},
        {"GET": "allocation:get", "DELETE": "allocation:delete"},
        allocations.SINCE,
    ),
    # deploy templates; with a hyphen as specification 003 has it
    *_build_routes("deploy_templates", step_lists.TEMPLATES, "deploy_template", 55, _HIDDEN_405),
    *_build_routes("deploy-templates", step_lists.HYPHENATED, "deploy_template", 55, _HIDDEN_405),
    # runbooks
    *_build_routes("runbooks", step_lists.RUNBOOKS, "runbook", 92, _HIDDEN_405),
    serve(
        "runbooks/<ident>/traits",
        step_lists.TRAITS.every,
        {"GET": "runbook:get", "PUT": "runbook:update", "DELETE": "runbook:update"},
        112,
    ),
    serve("runbooks/<ident>/traits/<trait>", step_lists.TRAITS.one, "runbook:update", 112),
    # drivers and conductors
    serve("drivers", {"GET": drivers.index}, "driver:get"),
    serve("drivers/<name>", {"GET": drivers.show}, "driver:get"),
    serve("drivers/<name>/properties", {"GET": drivers.properties}, "driver:get_properties"),
    serve(
        "drivers/<name>/raid/logical_disk_properties",
        {"GET": drivers.logical_disk_properties},
        "driver:get_raid_logical_disk_properties",
        12,
        _HIDDEN_406,
    ),
    serve("drivers/<name>/vendor_passthru/methods", {"GET": vendor.methods}, "driver:vendor_passthru"),
    serve("drivers/<name>/vendor_passthru", vendor.BY_QUERY, "driver:vendor_passthru"),
    serve("drivers/<name>/vendor_passthru/<method>", vendor.BY_PATH, "driver:vendor_passthru"),
    serve("conductors", {"GET": conductors.index}, "conductor:get", 49),
    serve("conductors/<hostname>", {"GET": conductors.show}, "conductor:get", 49),
    # Ingot's own
    serve(
        sessions.PATH,
        {"GET": session.show, "POST": session.create, "DELETE": session.delete},
        {"GET": "ingot:session:get", "POST": "ingot:session:create", "DELETE": "ingot:session:delete"},
        public=True,
    ),
    serve("/ingot/v1/permissions", {"GET": permissions.index}, "ingot:permissions:get"),
    serve(
        "/ingot/v1/nodes/<node>/plan",
        {"GET": provision.show_plan, "POST": provision.create_plan},
        "ingot:node:plan:get",
    ),
    serve("/ingot/v1/nodes/<node>/timeline", {"GET": history.show_timeline}, "ingot:node:timeline:get"),
    serve("/ingot/v1/nodes/<node>/explanation", {"GET": history.show_explanation}, "ingot:node:timeline:get"),
    serve("/ingot/v1/nodes/<node>/runs", {"GET": history.list_runs}, "ingot:node:timeline:get"),
    serve("/ingot/v1/nodes/<node>/history", {"GET": history.list_entries}, "node:history:get"),
    serve("/ingot/v1/nodes/<node>/logs", {"GET": history.list_logs}, "ingot:node:logs:get"),
    serve("/ingot/v1/nodes/<node>/logs/<uuid>", {"GET": history.show_log}, "ingot:node:logs:get"),
    serve("/ingot/v1/nodes/<node>/console", {"GET": console.attend}, "ingot:node:console:read"),
    serve("/ingot/v1/nodes/<node>/console/log", {"GET": console.show_log}, "ingot:node:console:read"),
    serve("/ingot/v1/nodes/<node>/steps", {"GET": management.list_offered_steps}, "ingot:node:steps:get"),
    serve("/ingot/v1/nodes/<node>/inventory/changes", {"GET": inventory.show_changes}, "node:inventory:get"),
    serve("/ingot/v1/nodes/<node>/sensors", {"GET": management.list_sensors}, "ingot:node:sensors:get"),
    serve("/ingot/v1/nodes/<node>/maintenance", {"GET": maintenance.index}, "ingot:node:maintenance:get"),
    serve(
        "/ingot/v1/nodes/<node>/maintenance/<hold>",
        {"GET": maintenance.show, "PUT": maintenance.put, "DELETE": maintenance.delete},
        {"GET": "ingot:node:maintenance:get", "PUT": "node:set_maintenance", "DELETE": "node:clear_maintenance"},
    ),
    serve("/ingot/v1/runs/<run>", {"GET": history.show_run}, "ingot:run:get"),
    serve("/ingot/v1/audit", {"GET": audit.index}, "ingot:audit:list"),
    serve("/ingot/v1/events", {"GET": events.follow}, "ingot:events:list"),
    serve("/ingot/v1/inbox", {"GET": inbox.index}, "ingot:inbox:get"),
    serve(
        "/ingot/v1/inbox/<ident>",
        {"GET": inbox.show, "DELETE": inbox.delete},
        {"GET": "ingot:inbox:get", "DELETE": "ingot:inbox:delete"},
    ),
    serve("/ingot/v1/inbox/<ident>/accept", {"POST": inbox.accept}, "ingot:inbox:accept"),
    serve("/ingot/v1/overview", {"GET": overview.index}, "ingot:overview:list"),
    serve("/ingot/v1/overdue", {"GET": overdue.index}, "ingot:overdue:get"),
    serve("/ingot/v1/fleet", {"GET": fleet.index}, "node:list"),
    serve("/ingot/v1/fleet/filter", {"GET": fleet.describe}, "node:list"),
    serve(
        "/ingot/v1/step_lists/template/<ident>/nodes", {"GET": step_lists.list_nodes_of_template}, "deploy_template:get"
    ),
    serve("/ingot/v1/step_lists/runbook/<ident>/nodes", {"GET": step_lists.list_nodes_of_runbook}, "runbook:get"),
    serve("/ingot/v1/conductors", {"GET": conductors.list_standings}, "ingot:conductors:get"),
    serve("/ingot/v1/conductors/<hostname>/leaving", {"GET": conductors.preview_leaving}, "ingot:conductors:get"),
    serve(
        "/ingot/v1/conductors/<hostname>/drain",
        {"PUT": conductors.drain, "DELETE": conductors.undrain},
        "ingot:conductors:drain",
    ),
    serve("/ingot/v1/bulk", {"POST": bulk.create}, "ingot:bulk:create"),
    serve(description.PATH, {"GET": description.show(lambda: ROUTES)}, "ingot:description:get"),
)
