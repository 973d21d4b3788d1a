"""The rules of policy and their defaults, one row each. Names are Ironic's: an operator's policy file carries over.

A rule is a check string of oslo.policy. Most are made of the building blocks :data:`BLOCKS`, which an operator can
redefine once for all rules that use them. The table of routes says which requests a rule is for.
"""

from typing import NamedTuple

SYSTEM, PROJECT = "system", "project"


class Rule(NamedTuple):
    """A rule that requests are checked with.

    :param check: default check string.
    :param about: what it allows, for the sample of a policy file.
    :param scopes: the scopes of tokens that can meet it at all.
    :param at_once: whether it is about no object in particular, and so checked before the handler runs.
    :param beside: the rule of the route whose handler checks this one too; none for the rule of a route itself.
    """

    name: str
    check: str
    about: str
    scopes: tuple[str, ...] = (SYSTEM, PROJECT)
    at_once: bool = False
    beside: str | None = None


_KEPT = {  # the names of Ironic that policy files may refer to
    "admin_api": "role:admin or role:administrator",
    "public_api": "is_public_api:True",
    "is_member": "(project_domain_id:default or project_domain_id:None) and "
    "(project_name:demo or project_name:baremetal)",
    "is_observer": "rule:is_member and (role:observer or role:baremetal_observer)",
    "is_admin": "rule:admin_api or (rule:is_member and role:baremetal_admin)",
}

BLOCKS: dict[str, tuple[str, str]] = {
    "service_role": (
        "role:service and project_name:%(config.service_project_name)s",
        "Other services of the cloud, by the project [DEFAULT] rbac_service_project_name; never met unless "
        "rbac_service_role_elevated_access is set.",
    ),
    "system_admin": ("role:admin and system_scope:all", "Administrator of the whole system."),
    "system_member": (
        "(role:member and system_scope:all) or rule:service_role",
        "Works with all nodes, but creates and deletes none.",
    ),
    "system_service": ("role:service and system_scope:all", "Another service of the cloud with a system-scoped token."),
    "system_reader": (
        "(role:reader and system_scope:all) or rule:system_service or rule:service_role",
        "Sees everything.",
    ),
    "is_node_owner": ("project_id:%(node.owner)s", "The project that owns the node."),
    "is_node_lessee": ("project_id:%(node.lessee)s", "The project that has the node on lease."),
    "owner_manager": ("(role:admin or role:manager) and rule:is_node_owner", "Managers of the node's owner."),
    "owner_member": ("role:member and rule:is_node_owner", "Members of the node's owner."),
    "owner_reader": ("role:reader and rule:is_node_owner", "Readers of the node's owner."),
    "owner_service": ("role:service and rule:is_node_owner", "Services of the node's owner."),
    "lessee_manager": ("(role:admin or role:manager) and rule:is_node_lessee", "Managers of the node's lessee."),
    "lessee_member": ("role:member and rule:is_node_lessee", "Members of the node's lessee."),
    "lessee_reader": ("role:reader and rule:is_node_lessee", "Readers of the node's lessee."),
    "is_allocation_owner": ("project_id:%(allocation.owner)s", "The project that owns the allocation."),
    "is_runbook_owner": ("project_id:%(runbook.owner)s", "The project that owns the runbook."),
    **{name: (check, "Kept for policy files that refer to it.") for name, check in _KEPT.items()},
}
"""Building blocks: check string and meaning. They compare the user with the owner of the object."""


def _match_any(*names: str) -> str:
    return " or ".join(f"rule:{name}" for name in names)


_ADMIN = _match_any("system_admin")
_ADMIN_OR_SERVICE = _match_any("system_admin", "system_service")
_MEMBER = _match_any("system_member")
_READER = _match_any("system_reader")
_LIST = "role:reader or role:service"
_SEE = _match_any("system_reader", "owner_reader", "lessee_reader", "owner_service")
_SEE_INSIDE = _match_any("system_reader", "owner_reader", "owner_service")
_CHANGE = _match_any("system_member", "system_service", "owner_member", "owner_service")
_CHANGE_WITH_LESSEE = _match_any("system_member", "system_service", "owner_member", "lessee_member")
_USE = _match_any("system_member", "system_service", "owner_member", "lessee_manager", "owner_service")
_MANAGE = _match_any("system_member", "system_service", "owner_manager", "owner_service")
_ENROLL = _match_any("system_admin", "system_service", "owner_manager", "owner_service")
_VOLUMES = _match_any("system_member", "system_service", "owner_manager", "lessee_manager", "owner_service")
_OWN_NODES = "nodes that the own project owns, with [api] project_admin_can_manage_own_nodes"
_OWN_ALLOCATION = f"{_MEMBER} or (role:member and rule:is_allocation_owner)"
_OWN_RUNBOOK = f"{_MEMBER} or (role:manager and rule:is_runbook_owner) or role:service"


def _build_rules(
    noun: str, *rows: tuple[str, ...], scopes: tuple[str, ...] = (SYSTEM, PROJECT), at_once: bool = False
) -> tuple[Rule, ...]:
    """Return the rules of one noun.

    :param rows: action, check, what it allows; and the action of the route whose handler checks this rule too, if any.
    """
    return tuple(
        Rule(f"{noun}:{action}", check, about, scopes, at_once, f"{noun}:{beside[0]}" if beside else None)
        for action, check, about, *beside in rows
    )


def _build_rules_of_node(noun: str) -> tuple[Rule, ...]:
    """Return the rules of what belongs to a node, by the node's owner and lessee."""
    return _build_rules(
        f"baremetal:{noun}",
        ("get", _SEE, f"Show a {noun}"),
        ("list", _LIST, f"List {noun}s of the nodes that the own project owns or leases"),
        ("list_all", _READER, f"List all {noun}s", "list"),
        ("create", _ENROLL, f"Create a {noun}"),
        ("update", _MANAGE, f"Change a {noun}"),
        ("delete", _ENROLL, f"Delete a {noun}"),
    )


def _build_rules_of_system(noun: str, update: str, scopes: tuple[str, ...] = (SYSTEM, PROJECT)) -> tuple[Rule, ...]:
    """Return the rules of what belongs to no project."""
    return _build_rules(
        f"baremetal:{noun}",
        ("get", _READER, f"Show and list: {noun}"),
        ("create", _ADMIN, f"Create: {noun}"),
        ("update", update, f"Change: {noun}"),
        ("delete", _ADMIN, f"Delete: {noun}"),
        scopes=scopes,
        at_once=True,
    )


EVERY = (
    *_build_rules(
        "baremetal:node",
        ("create", _ADMIN_OR_SERVICE, "Create nodes of any owner"),
        ("list", _LIST, "List the nodes that the own project owns or leases"),
        ("get", _SEE, "Show a node. A user who may not gets 404 for every request about the node"),
        ("update", _CHANGE_WITH_LESSEE, "Change fields of a node that have no rule of their own"),
        ("delete", _ADMIN, "Delete any node"),
        ("validate", _USE, "Validate the interfaces of a node"),
        ("set_maintenance", _USE, "Put a node into maintenance"),
        ("clear_maintenance", _USE, "Take a node out of maintenance"),
        ("get_boot_device", _MANAGE, "See the boot device"),
        ("set_boot_device", _MANAGE, "Set the boot device"),
        ("get_indicator_state", _SEE, "See indicators, and whether they are lit"),
        ("set_indicator_state", _CHANGE, "Switch indicators"),
        ("inject_nmi", _MANAGE, "Send a non-maskable interrupt"),
        ("get_states", _SEE, "See the states of a node"),
        ("set_power_state", _CHANGE_WITH_LESSEE, "Change the power state"),
        ("set_boot_mode", _CHANGE_WITH_LESSEE, "Change the boot mode"),
        ("set_secure_boot", _CHANGE_WITH_LESSEE, "Change secure boot"),
        ("set_provision_state", _USE, "Request a provision state"),
        ("set_raid_state", _CHANGE, "Set the target RAID configuration"),
        ("get_console", _CHANGE, "See how to reach the console"),
        ("set_console_state", _CHANGE, "Start and stop the console"),
        ("vif:list", _SEE, "List attached virtual interfaces"),
        ("vif:attach", _USE, "Attach a virtual interface"),
        ("vif:detach", _USE, "Detach a virtual interface"),
        ("traits:list", _SEE, "List traits"),
        ("traits:set", _MANAGE, "Set traits"),
        ("traits:delete", _MANAGE, "Remove traits"),
        ("bios:get", _SEE, "See BIOS settings"),
        ("firmware:get", _SEE, "See firmware components"),
        ("history:get", _SEE_INSIDE, "Read the history"),
        ("inventory:get", _SEE_INSIDE, "See what inspection found"),
        ("vmedia:get", _SEE, "See virtual media"),
        ("vmedia:attach", _CHANGE_WITH_LESSEE, "Attach virtual media"),
        ("vmedia:detach", _CHANGE_WITH_LESSEE, "Detach virtual media"),
        ("vendor_passthru", _ADMIN, "Call what a node's vendor interface can do"),
        ("create:self_owned_node", "role:admin or role:service", f"Create {_OWN_NODES}", "create"),
        ("list_all", _READER, "List all nodes", "list"),
        (
            "get:filter_threshold",
            _READER,
            "See all fields of any node; the rules of single fields are not checked",
            "get",
        ),
        ("get:last_error", _SEE_INSIDE, "See last_error, which may tell of the infrastructure", "get"),
        ("get:reservation", _SEE_INSIDE, "See which conductor holds the lock of a node", "get"),
        ("get:driver_internal_info", _SEE_INSIDE, "See driver_internal_info", "get"),
        ("get:driver_info", _SEE_INSIDE, "See driver_info; its secrets are masked for all users", "get"),
        ("update_extra", _CHANGE_WITH_LESSEE, "Change extra", "update"),
        ("update_instance_info", _USE, "Change instance_info and instance_name", "update"),
        ("update:driver_info", _CHANGE, "Change driver_info", "update"),
        ("update:properties", _CHANGE, "Change properties", "update"),
        ("update:chassis_uuid", _ADMIN, "Change chassis_uuid", "update"),
        ("update:instance_uuid", _CHANGE, "Change instance_uuid", "update"),
        ("update:lessee", _CHANGE, "Change lessee", "update"),
        ("update:owner", _MEMBER, "Change owner", "update"),
        ("update:driver_interfaces", _MANAGE, "Change driver and the interfaces", "update"),
        ("update:network_data", _CHANGE, "Change network_data", "update"),
        ("update:conductor_group", _MEMBER, "Change conductor_group", "update"),
        ("update:name", _CHANGE, "Change name", "update"),
        ("update:retired", _CHANGE, "Change retired and retired_reason", "update"),
        ("update:shard", _ADMIN, "Change shard", "update"),
        ("update:parent_node", _MEMBER, "Change parent_node", "update"),
        ("update:disable_power_off", _ADMIN, "Change disable_power_off", "update"),
        ("disable_cleaning", _ADMIN, "Set automated_clean to false", "update"),
        ("delete:self_owned_node", "role:admin and rule:is_node_owner", f"Delete {_OWN_NODES}", "delete"),
        ("set_provision_state:clean_steps", _USE, "Send clean steps of one's own", "set_provision_state"),
        ("set_provision_state:service_steps", _USE, "Send service steps of one's own", "set_provision_state"),
    ),
    *_build_rules(
        "baremetal:node",
        ("update_owner_provisioned", _ADMIN, "Change the owner of a node in state active", "update"),
        scopes=(SYSTEM,),
    ),
    *_build_rules("baremetal:shards", ("get", _READER, "List shards"), at_once=True),
    *_build_rules("baremetal:inspection_rule", ("list_all", _READER, "List all inspection rules", "get")),
    *_build_rules(
        "baremetal:driver",
        ("get", _READER, "Show and list drivers"),
        ("get_properties", _READER, "See the properties that a driver knows"),
        ("get_raid_logical_disk_properties", _READER, "See what a driver's RAID can do"),
        ("vendor_passthru", _ADMIN, "Call what a driver's vendor interface can do"),
        scopes=(SYSTEM,),
        at_once=True,
    ),
    *_build_rules("baremetal:conductor", ("get", _READER, "Show and list conductors"), at_once=True),
    *_build_rules(
        "baremetal:events", ("post", _ADMIN, "Report events of other services"), scopes=(SYSTEM,), at_once=True
    ),
    *_build_rules(
        "baremetal:volume",
        ("get", _SEE, "Show a volume connector or target"),
        ("list", _LIST, "List volumes of the nodes that the own project owns or leases"),
        ("create", _VOLUMES, "Create a volume connector or target"),
        ("update", _USE, "Change a volume connector or target"),
        ("delete", _VOLUMES, "Delete a volume connector or target"),
        ("list_all", _READER, "List the volumes of all nodes", "list"),
        (
            "view_target_properties",
            f"{_READER} or role:admin",
            "See properties of volume targets; their secrets are masked for all users",
            "get",
        ),
    ),
    *_build_rules(
        "baremetal:allocation",
        ("get", f"{_READER} or (role:reader and rule:is_allocation_owner)", "Show an allocation"),
        ("list", _LIST, "List allocations of the own project"),
        ("create", f"{_MEMBER} or role:member", "Create an allocation of the own project"),
        ("update", _OWN_ALLOCATION, "Change an allocation"),
        ("delete", _OWN_ALLOCATION, "Delete an allocation"),
        ("list_all", _READER, "List all allocations", "list"),
        ("create_restricted", _MEMBER, "Create an allocation of any owner, on any node", "create"),
    ),
    *_build_rules(
        "baremetal:runbook",
        (
            "get",
            f"{_READER} or (role:reader and (rule:is_runbook_owner or True:%(runbook.public)s)) or role:service",
            "Show a runbook; public ones can be shown by all users",
        ),
        ("list", _LIST, "List runbooks of the own project, and public ones"),
        ("update", _OWN_RUNBOOK, "Change a runbook"),
        ("delete", _OWN_RUNBOOK, "Delete a runbook"),
        ("list_all", _READER, "List all runbooks", "list"),
        ("update:public", _MEMBER, "Change whether a runbook is public", "update"),
        ("update:owner", _MEMBER, "Change the owner of a runbook", "update"),
    ),
    *_build_rules(
        "baremetal:runbook", ("create", f"{_MEMBER} or role:manager or role:service", "Create a runbook"), at_once=True
    ),
    Rule(
        "baremetal:runbook:use",
        _OWN_RUNBOOK,
        "Clean or service a node by a runbook",
        beside="baremetal:node:set_provision_state",
    ),
    *_build_rules(
        "ingot",
        ("node:clean_steps:get", _SEE, "List the clean steps of a node"),
        ("node:plan:get", _USE, "See the plan of a deployment, cleaning or servicing"),
        ("node:timeline:get", _SEE_INSIDE, "See runs and their steps"),
        ("node:steps:get", _SEE, "List the steps that can be asked for on a node"),
        ("node:sensors:get", _SEE_INSIDE, "Read the sensors of a machine now"),
        ("node:maintenance:get", _SEE_INSIDE, "See the reasons why a node is in maintenance"),
        ("node:logs:get", _SEE_INSIDE, "Read logs of agents"),
        ("node:console:read", _SEE_INSIDE, "Read the serial console, now and what it said before"),
        ("node:console:write", _CHANGE, "Type on the serial console", "node:console:read"),
        ("run:get", _SEE_INSIDE, "See one run"),
    ),
    *_build_rules(
        "ingot",
        ("overdue:get", _READER, "List the nodes that are in their state for too long"),
        ("conductors:get", _READER, "See what conductors own and have to do, and what moves if one leaves"),
        ("conductors:drain", _ADMIN, "Have a conductor hand over its nodes, and take nodes again"),
        ("inbox:get", _READER, "See the inbox: machines that were discovered"),
        (
            "inbox:accept",
            _ADMIN_OR_SERVICE,
            "Accept a machine of the inbox as a node; the rule for creating nodes counts",
        ),
        ("inbox:delete", _ADMIN, "Delete a machine from the inbox"),
        ("permissions:get", "", "See which rules allow something to oneself: all users with a token"),
        ("description:get", "", "Read the description of this API: all users with a token"),
        (
            "bulk:create",
            "role:member or role:service",
            "One verb on many nodes; the rule of the verb is checked for each node",
        ),
        at_once=True,
    ),
    *_build_rules(
        "ingot:audit",
        ("list", _LIST, "Read the audit trail of the nodes that the own project owns or leases"),
        ("list_all", _READER, "Read the whole audit trail", "list"),
    ),
    *_build_rules(
        "ingot:events",
        ("list", _LIST, "Follow the events of nodes that the own project owns or leases"),
        ("list_all", _match_any("ingot:events:get"), "Follow the events of all nodes", "list"),
        ("get", _READER, "Kept for policy files: ingot:events:list_all refers to it", "list"),
    ),
    *_build_rules(
        "ingot:overview",
        ("list", _LIST, "See what the nodes need that the own project owns or leases, and their work"),
        ("list_all", _READER, "See what all nodes need, and their work", "list"),
    ),
    *_build_rules_of_node("port"),
    *_build_rules_of_node("portgroup"),
    *_build_rules_of_system("chassis", _MEMBER, (SYSTEM,)),
    *_build_rules_of_system("deploy_template", _ADMIN),
    *_build_rules_of_system("inspection_rule", _ADMIN),
)

RULES: dict[str, Rule] = {rule.name: rule for rule in EVERY}
"""By name."""
