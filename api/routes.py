"""All routes: which URL, which methods, from which version on. 405 and ``Allow`` come from this table."""

from collections.abc import Mapping
from typing import NamedTuple

from ingot.api import (
    agent_logs,
    agents,
    allocations,
    boot,
    chassis,
    children,
    conductors,
    deploy_templates,
    description,
    drivers,
    inspection_rules,
    network_events,
    node_bios,
    node_firmware,
    node_hardware,
    node_history,
    node_inventory,
    node_management,
    node_states,
    node_traits,
    node_vifs,
    node_vmedia,
    nodes,
    plan,
    portgroups,
    ports,
    provision,
    root,
    runbooks,
    shards,
    timeline,
    vendor,
    volumes,
)
from ingot.api.call import Operation
from ingot.api.collection import without_ident
from ingot.api.crud import Crud
from ingot.common import errors

_HIDDEN = {"GET": 404, "*": 404}
"""A resource that is newer than the request's version: as if it were not there."""

_HIDDEN_405 = {"GET": 404, "*": 405}
_HIDDEN_GET_405 = {"GET": 405, "*": 404}
_HIDDEN_406 = {"GET": 406, "PUT": 405, "DELETE": 404, "*": 406}

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
    """

    path: str
    operations: Mapping[str, Operation]
    since: int = 1
    below: Mapping[str, int] = _HIDDEN
    public: bool = False
    any_version: bool = False
    text: bool = False

    @property
    def tagged(self) -> bool:
        """Whether writing to it is writing to one object, which has an entity tag."""
        return not self.public and ("<node>" in self.path or "<ident>" in self.path)

    def too_new(self, method: str) -> errors.IngotError:
        """The error for a request of an older version."""
        refusal = _REFUSALS[self.below.get(method, self.below["*"])]
        return refusal(f"{method} {self.path} needs API version 1.{self.needs(method)} or newer.")

    def needs(self, method: str) -> int:
        """The minor version that brought a method of it; for one that nobody serves, the URL itself."""
        operation = self.operations.get(method)
        return max(self.since, operation.since) if operation else self.since


def _all(crud: Crud) -> dict[str, Operation]:
    return {"GET": crud.index, "POST": crud.create, "PATCH": without_ident, "DELETE": without_ident}


def _one(crud: Crud) -> dict[str, Operation]:
    return {"GET": crud.show, "PATCH": crud.update, "DELETE": crud.delete}


ROUTES: tuple[Route, ...] = (
    Route("/", {"GET": root.service}, public=True, any_version=True),
    Route("/v1", {"GET": root.version_1}, public=True),
    # what machines and their agents ask for
    Route("/boot/ipxe/<mac>", {"GET": boot.ipxe}, public=True, any_version=True, text=True),
    Route("/v1/lookup", {"GET": agents.lookup}, 22, public=True),
    Route("/v1/heartbeat", {"POST": without_ident}, 22, public=True),
    Route("/v1/heartbeat/<node>", {"POST": agents.heartbeat}, 22, public=True),
    Route("/v1/continue_inspection", {"POST": agents.continue_inspection}, public=True),
    # nodes
    Route(
        "/v1/nodes",
        {"GET": nodes.index, "POST": nodes.create, "PATCH": without_ident, "DELETE": without_ident},
    ),
    Route("/v1/nodes/detail", {"GET": nodes.detail}),
    Route("/v1/nodes/validate", {"GET": node_management.validate_named}),
    Route("/v1/nodes/<node>", {"GET": nodes.show, "PATCH": nodes.update, "DELETE": nodes.delete}),
    Route("/v1/nodes/<node>/states", {"GET": node_states.show}),
    Route("/v1/nodes/<node>/states/power", {"PUT": node_states.set_power}),
    Route("/v1/nodes/<node>/states/provision", {"PUT": provision.set_provision}),
    Route(
        "/v1/nodes/<node>/states/console",
        {"GET": node_hardware.console, "PUT": node_hardware.set_console},
    ),
    Route("/v1/nodes/states/console/<node>", {"GET": node_hardware.console}),  # as tempest spells it
    Route("/v1/nodes/<node>/states/boot_mode", {"PUT": node_hardware.set_boot_mode}, 76),
    Route("/v1/nodes/<node>/states/secure_boot", {"PUT": node_hardware.set_secure_boot}, 76),
    Route("/v1/nodes/<node>/states/raid", {"PUT": node_states.set_raid}, 12, _HIDDEN_406),
    Route(
        "/v1/nodes/<node>/maintenance",
        {"PUT": node_states.set_maintenance, "DELETE": node_states.clear_maintenance},
    ),
    Route(
        "/v1/nodes/<node>/management/boot_device",
        {"GET": node_management.boot_device, "PUT": node_management.set_boot_device},
    ),
    Route("/v1/nodes/<node>/management/boot_device/supported", {"GET": node_management.supported_boot_devices}),
    Route("/v1/nodes/<node>/management", {}),
    Route("/v1/nodes/<node>/management/inject_nmi", {"PUT": node_hardware.inject_nmi}, 29),
    Route("/v1/nodes/<node>/management/indicators", {"GET": node_hardware.indicators}),
    Route(
        "/v1/nodes/<node>/management/indicators/<name>",
        {"GET": node_hardware.indicator, "PUT": node_hardware.set_indicator},
    ),
    Route(
        "/v1/nodes/<node>/management/indicators/<component>/<name>",
        {"GET": node_hardware.indicator_of, "PUT": node_hardware.set_indicator_of},
    ),
    Route("/v1/nodes/<node>/validate", {"GET": node_management.validate}),
    Route("/v1/nodes/<node>/cleaning/steps", {"GET": node_management.cleaning_steps}),
    Route(
        "/v1/nodes/<node>/traits",
        {"GET": node_traits.index, "PUT": node_traits.replace, "DELETE": node_traits.clear},
        37,
        _HIDDEN_406,
    ),
    Route("/v1/nodes/<node>/traits/<trait>", {"PUT": node_traits.add, "DELETE": node_traits.remove}, 37, _HIDDEN_406),
    Route("/v1/nodes/<node>/history", {"GET": node_history.index}, 78),
    Route("/v1/nodes/<node>/history/<uuid>", {"GET": node_history.show}, 78),
    Route("/v1/nodes/<node>/bios", {"GET": node_bios.index}, node_bios.SINCE),
    Route("/v1/nodes/<node>/bios/<name>", {"GET": node_bios.show}, node_bios.SINCE),
    Route("/v1/nodes/<node>/firmware", {"GET": node_firmware.index}, node_firmware.SINCE),
    Route("/v1/nodes/<node>/inventory", {"GET": node_inventory.show}, 81),
    Route("/v1/nodes/<node>/children", {"GET": children.index}, 83),
    Route("/v1/nodes/<node>/vifs", {"GET": node_vifs.index, "POST": node_vifs.attach}, 28),
    Route("/v1/nodes/<node>/vifs/<vif>", {"DELETE": node_vifs.detach}, 28),
    Route(
        "/v1/nodes/<node>/vmedia",
        {"GET": node_vmedia.show, "POST": node_vmedia.attach, "DELETE": node_vmedia.detach},
        89,
    ),
    Route("/v1/nodes/<node>/vendor_passthru/methods", {"GET": vendor.methods_of_node}),
    Route("/v1/nodes/<node>/vendor_passthru", vendor.NODE_BY_QUERY),
    Route("/v1/nodes/<node>/vendor_passthru/<method>", vendor.NODE_BY_PATH),
    Route("/v1/nodes/<node>/ports", {"GET": ports.of_node}),
    Route("/v1/nodes/<node>/portgroups", {"GET": portgroups.of_node}, 24),
    # ports and portgroups
    Route("/v1/ports", _all(ports.CRUD)),
    Route("/v1/ports/detail", {"GET": ports.CRUD.detail}),
    Route("/v1/ports/<ident>", _one(ports.CRUD)),
    Route("/v1/portgroups", _all(portgroups.CRUD), 23),
    Route("/v1/portgroups/detail", {"GET": portgroups.CRUD.detail}, 23),
    Route("/v1/portgroups/<ident>", _one(portgroups.CRUD), 23),
    Route("/v1/portgroups/<ident>/ports", {"GET": ports.of_portgroup}, 24),
    # volumes
    Route("/v1/volume", {"GET": volumes.root}, volumes.SINCE),
    Route("/v1/volume/connectors", _all(volumes.CONNECTORS), volumes.SINCE),
    Route("/v1/volume/connectors/<ident>", _one(volumes.CONNECTORS), volumes.SINCE),
    Route("/v1/volume/targets", _all(volumes.TARGETS), volumes.SINCE),
    Route("/v1/volume/targets/<ident>", _one(volumes.TARGETS), volumes.SINCE),
    Route("/v1/nodes/<node>/volume", {"GET": volumes.root_of_node}, volumes.SINCE),
    Route("/v1/nodes/<node>/volume/connectors", {"GET": volumes.connectors_of_node}, volumes.SINCE),
    Route("/v1/nodes/<node>/volume/targets", {"GET": volumes.targets_of_node}, volumes.SINCE),
    # chassis
    Route("/v1/chassis", _all(chassis.CRUD)),
    Route("/v1/chassis/detail", {"GET": chassis.CRUD.detail}),
    Route("/v1/chassis/<ident>", _one(chassis.CRUD)),
    Route("/v1/chassis/<ident>/nodes", {"GET": chassis.nodes_in}),
    Route("/v1/chassis/<ident>/nodes/detail", {"GET": chassis.nodes_in_detail}),
    # shards, inspection rules, events of a network service
    Route("/v1/shards", {"GET": shards.index}, 82),
    Route(
        "/v1/inspection_rules",
        _all(inspection_rules.CRUD) | {"DELETE": inspection_rules.delete_all},
        inspection_rules.SINCE,
        _HIDDEN_405,
    ),
    Route("/v1/inspection_rules/<ident>", _one(inspection_rules.CRUD), inspection_rules.SINCE, _HIDDEN_405),
    Route("/v1/events", {"POST": network_events.create}, network_events.SINCE, _HIDDEN_GET_405),
    # allocations
    Route("/v1/allocations", _all(allocations.CRUD) | {"POST": allocations.create}, allocations.SINCE, _HIDDEN_405),
    Route(
        "/v1/allocations/<ident>",
        _one(allocations.CRUD) | {"PATCH": allocations.UPDATE},
        allocations.SINCE,
        _HIDDEN_405,
    ),
    Route(
        "/v1/nodes/<node>/allocation",
        {"GET": allocations.of_node, "DELETE": allocations.delete_of_node},
        allocations.SINCE,
    ),
    # deploy templates; with a hyphen as specification 003 has it
    Route("/v1/deploy_templates", _all(deploy_templates.CRUD), 55, _HIDDEN_405),
    Route("/v1/deploy_templates/<ident>", _one(deploy_templates.CRUD), 55, _HIDDEN_405),
    Route("/v1/deploy-templates", _all(deploy_templates.HYPHENATED), 55, _HIDDEN_405),
    Route("/v1/deploy-templates/<ident>", _one(deploy_templates.HYPHENATED), 55, _HIDDEN_405),
    # runbooks
    Route("/v1/runbooks", _all(runbooks.CRUD), 92, _HIDDEN_405),
    Route("/v1/runbooks/<ident>", _one(runbooks.CRUD), 92, _HIDDEN_405),
    Route(
        "/v1/runbooks/<ident>/traits",
        {"GET": runbooks.traits_index, "PUT": runbooks.traits_replace, "DELETE": runbooks.traits_clear},
        runbooks.TRAITS_SINCE,
    ),
    Route(
        "/v1/runbooks/<ident>/traits/<trait>",
        {"PUT": runbooks.traits_add, "DELETE": runbooks.traits_remove},
        runbooks.TRAITS_SINCE,
    ),
    # drivers and conductors
    Route("/v1/drivers", {"GET": drivers.index}),
    Route("/v1/drivers/<name>", {"GET": drivers.show}),
    Route("/v1/drivers/<name>/properties", {"GET": drivers.properties}),
    Route(
        "/v1/drivers/<name>/raid/logical_disk_properties",
        {"GET": drivers.logical_disk_properties},
        12,
        _HIDDEN_406,
    ),
    Route("/v1/drivers/<name>/vendor_passthru/methods", {"GET": vendor.methods}),
    Route("/v1/drivers/<name>/vendor_passthru", vendor.BY_QUERY),
    Route("/v1/drivers/<name>/vendor_passthru/<method>", vendor.BY_PATH),
    Route("/v1/conductors", {"GET": conductors.index}, 49),
    Route("/v1/conductors/<hostname>", {"GET": conductors.show}, 49),
    # Ingot's own
    Route("/ingot/v1/nodes/<node>/plan", {"GET": plan.show, "POST": plan.create}, any_version=True),
    Route("/ingot/v1/nodes/<node>/timeline", {"GET": timeline.show}, any_version=True),
    Route("/ingot/v1/nodes/<node>/runs", {"GET": timeline.runs}, any_version=True),
    Route("/ingot/v1/nodes/<node>/logs", {"GET": agent_logs.index}, any_version=True),
    Route("/ingot/v1/nodes/<node>/logs/<uuid>", {"GET": agent_logs.show}, any_version=True, text=True),
    Route(description.PATH, {"GET": description.show(lambda: ROUTES)}, any_version=True),
)
