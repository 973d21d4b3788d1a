"""The rules of policy and their defaults, one row each. Names are Ironic's: an operator's policy file carries over.

A rule is a check string of oslo.policy. Most are made of the building blocks :data:`BLOCKS`, which an operator can
redefine once for all rules that use them. Which request a rule is for stands in the table of routes.
"""

from typing import NamedTuple

SYSTEM, PROJECT = "system", "project"


class Rule(NamedTuple):
    """A rule that requests are checked with.

    :param check: default check string: who may.
    :param about: what it allows, for the sample of a policy file.
    :param scopes: kinds of tokens that can meet it at all.
    :param at_once: whether it is about no object in particular, and so asked before the handler runs.
    :param beside: the rule of the route whose handler asks this one too; none for the rule of a route itself.
    """

    name: str
    check: str
    about: str
    scopes: tuple[str, ...] = (SYSTEM, PROJECT)
    at_once: bool = False
    beside: str | None = None


BLOCKS: dict[str, tuple[str, str]] = {
    "service_role": (
        "role:service and project_name:%(config.service_project_name)s",
        "Other services of the cloud, by the project [DEFAULT] rbac_service_project_name; never met unless "
        "rbac_service_role_elevated_access is set.",
    ),
    "system_admin": ("role:admin and system_scope:all", "Administrator of the whole system."),
    "system_member": (
        "(role:member and system_scope:all) or rule:service_role",
        "Who works with all nodes, but creates and deletes none.",
    ),
    "system_service": ("role:service and system_scope:all", "Another service of the cloud with a system-scoped token."),
    "system_reader": (
        "(role:reader and system_scope:all) or rule:system_service or rule:service_role",
        "Who sees everything.",
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
    "admin_api": ("role:admin or role:administrator", "Kept for policy files that refer to it."),
    "public_api": ("is_public_api:True", "Kept for policy files that refer to it."),
    "is_member": (
        "(project_domain_id:default or project_domain_id:None) and (project_name:demo or project_name:baremetal)",
        "Kept for policy files that refer to it.",
    ),
    "is_observer": (
        "rule:is_member and (role:observer or role:baremetal_observer)",
        "Kept for policy files that refer to it.",
    ),
    "is_admin": (
        "rule:admin_api or (rule:is_member and role:baremetal_admin)",
        "Kept for policy files that refer to it.",
    ),
}
"""Building blocks: check string and meaning. They are met by who asks and whose object it is."""


def _any(*names: str) -> str:
    return " or ".join(f"rule:{name}" for name in names)


_ADMIN = _any("system_admin")
_MEMBER = _any("system_member")
_READER = _any("system_reader")
_LIST = "role:reader or role:service"
_SEE = _any("system_reader", "owner_reader", "lessee_reader", "owner_service")
_SEE_INSIDE = _any("system_reader", "owner_reader", "owner_service")
_CHANGE = _any("system_member", "system_service", "owner_member", "owner_service")
_CHANGE_WITH_LESSEE = _any("system_member", "system_service", "owner_member", "lessee_member")
_USE = _any("system_member", "system_service", "owner_member", "lessee_manager", "owner_service")
_MANAGE = _any("system_member", "system_service", "owner_manager", "owner_service")
_ENROLL = _any("system_admin", "system_service", "owner_manager", "owner_service")
_VOLUMES = _any("system_member", "system_service", "owner_manager", "lessee_manager", "owner_service")
_OWN_ALLOCATION = f"{_MEMBER} or (role:member and rule:is_allocation_owner)"
_OWN_RUNBOOK = f"{_MEMBER} or (role:manager and rule:is_runbook_owner) or role:service"

_NODE = "baremetal:node"
_CREATE, _LIST_NODES, _GET, _UPDATE, _DELETE, _PROVISION = (
    f"{_NODE}:{what}" for what in ("create", "list", "get", "update", "delete", "set_provision_state")
)

_NODES = (
    Rule(f"{_NODE}:create", _any("system_admin", "system_service"), "Create nodes of any owner"),
    Rule(
        f"{_NODE}:create:self_owned_node",
        "role:admin or role:service",
        "Create nodes that the own project owns, with [api] project_admin_can_manage_own_nodes",
        beside=_CREATE,
    ),
    Rule(f"{_NODE}:list", _LIST, "List the nodes that the own project owns or leases"),
    Rule(f"{_NODE}:list_all", _READER, "List all nodes", beside=_LIST_NODES),
    Rule(f"{_NODE}:get", _SEE, "Show a node. Who may not gets 404 for whatever is asked of the node"),
    Rule(
        f"{_NODE}:get:filter_threshold",
        _READER,
        "See all fields of any node; the rules of single fields are not asked",
        beside=_GET,
    ),
    Rule(f"{_NODE}:get:last_error", _SEE_INSIDE, "See last_error, which may tell of the infrastructure", beside=_GET),
    Rule(f"{_NODE}:get:reservation", _SEE_INSIDE, "See which conductor holds the lock of a node", beside=_GET),
    Rule(f"{_NODE}:get:driver_internal_info", _SEE_INSIDE, "See driver_internal_info", beside=_GET),
    Rule(f"{_NODE}:get:driver_info", _SEE_INSIDE, "See driver_info; its secrets are masked for everybody", beside=_GET),
    Rule(f"{_NODE}:update", _CHANGE_WITH_LESSEE, "Change fields of a node that have no rule of their own"),
    Rule(f"{_NODE}:update_extra", _CHANGE_WITH_LESSEE, "Change extra", beside=_UPDATE),
    Rule(f"{_NODE}:update_instance_info", _USE, "Change instance_info and instance_name", beside=_UPDATE),
    Rule(
        f"{_NODE}:update_owner_provisioned",
        _ADMIN,
        "Change the owner of a node in state active",
        (SYSTEM,),
        beside=_UPDATE,
    ),
    Rule(f"{_NODE}:update:driver_info", _CHANGE, "Change driver_info", beside=_UPDATE),
    Rule(f"{_NODE}:update:properties", _CHANGE, "Change properties", beside=_UPDATE),
    Rule(f"{_NODE}:update:chassis_uuid", _ADMIN, "Change chassis_uuid", beside=_UPDATE),
    Rule(f"{_NODE}:update:instance_uuid", _CHANGE, "Change instance_uuid", beside=_UPDATE),
    Rule(f"{_NODE}:update:lessee", _CHANGE, "Change lessee", beside=_UPDATE),
    Rule(f"{_NODE}:update:owner", _MEMBER, "Change owner", beside=_UPDATE),
    Rule(f"{_NODE}:update:driver_interfaces", _MANAGE, "Change driver and the interfaces", beside=_UPDATE),
    Rule(f"{_NODE}:update:network_data", _CHANGE, "Change network_data", beside=_UPDATE),
    Rule(f"{_NODE}:update:conductor_group", _MEMBER, "Change conductor_group", beside=_UPDATE),
    Rule(f"{_NODE}:update:name", _CHANGE, "Change name", beside=_UPDATE),
    Rule(f"{_NODE}:update:retired", _CHANGE, "Change retired and retired_reason", beside=_UPDATE),
    Rule(f"{_NODE}:update:shard", _ADMIN, "Change shard", beside=_UPDATE),
    Rule(f"{_NODE}:update:parent_node", _MEMBER, "Change parent_node", beside=_UPDATE),
    Rule(f"{_NODE}:update:disable_power_off", _ADMIN, "Change disable_power_off", beside=_UPDATE),
    Rule(f"{_NODE}:disable_cleaning", _ADMIN, "Set automated_clean to false", beside=_UPDATE),
    Rule(f"{_NODE}:delete", _ADMIN, "Delete any node"),
    Rule(
        f"{_NODE}:delete:self_owned_node",
        "role:admin and rule:is_node_owner",
        "Delete nodes that the own project owns, with [api] project_admin_can_manage_own_nodes",
        beside=_DELETE,
    ),
    Rule(f"{_NODE}:validate", _USE, "Validate the interfaces of a node"),
    Rule(f"{_NODE}:set_maintenance", _USE, "Put a node into maintenance"),
    Rule(f"{_NODE}:clear_maintenance", _USE, "Take a node out of maintenance"),
    Rule(f"{_NODE}:get_boot_device", _MANAGE, "See the boot device"),
    Rule(f"{_NODE}:set_boot_device", _MANAGE, "Set the boot device"),
    Rule(f"{_NODE}:get_indicator_state", _SEE, "See indicators, and whether they are lit"),
    Rule(f"{_NODE}:set_indicator_state", _CHANGE, "Switch indicators"),
    Rule(f"{_NODE}:inject_nmi", _MANAGE, "Send a non-maskable interrupt"),
    Rule(f"{_NODE}:get_states", _SEE, "See the states of a node"),
    Rule(f"{_NODE}:set_power_state", _CHANGE_WITH_LESSEE, "Change the power state"),
    Rule(f"{_NODE}:set_boot_mode", _CHANGE_WITH_LESSEE, "Change the boot mode"),
    Rule(f"{_NODE}:set_secure_boot", _CHANGE_WITH_LESSEE, "Change secure boot"),
    Rule(f"{_NODE}:set_provision_state", _USE, "Ask for a provision state"),
    Rule(f"{_NODE}:set_provision_state:clean_steps", _USE, "Send clean steps of one's own", beside=_PROVISION),
    Rule(f"{_NODE}:set_provision_state:service_steps", _USE, "Send service steps of one's own", beside=_PROVISION),
    Rule(f"{_NODE}:set_raid_state", _CHANGE, "Set the target RAID configuration"),
    Rule(f"{_NODE}:get_console", _CHANGE, "See how to reach the console"),
    Rule(f"{_NODE}:set_console_state", _CHANGE, "Start and stop the console"),
    Rule(f"{_NODE}:vif:list", _SEE, "List attached virtual interfaces"),
    Rule(f"{_NODE}:vif:attach", _USE, "Attach a virtual interface"),
    Rule(f"{_NODE}:vif:detach", _USE, "Detach a virtual interface"),
    Rule(f"{_NODE}:traits:list", _SEE, "List traits"),
    Rule(f"{_NODE}:traits:set", _MANAGE, "Set traits"),
    Rule(f"{_NODE}:traits:delete", _MANAGE, "Remove traits"),
    Rule(f"{_NODE}:bios:get", _SEE, "See BIOS settings"),
    Rule(f"{_NODE}:firmware:get", _SEE, "See firmware components"),
    Rule(f"{_NODE}:history:get", _SEE_INSIDE, "Read the history"),
    Rule(f"{_NODE}:inventory:get", _SEE_INSIDE, "See what inspection found"),
    Rule(f"{_NODE}:vmedia:get", _SEE, "See virtual media"),
    Rule(f"{_NODE}:vmedia:attach", _CHANGE_WITH_LESSEE, "Attach virtual media"),
    Rule(f"{_NODE}:vmedia:detach", _CHANGE_WITH_LESSEE, "Detach virtual media"),
    Rule(f"{_NODE}:vendor_passthru", _ADMIN, "Call what a node's vendor interface can do"),
    Rule("baremetal:shards:get", _READER, "List shards", at_once=True),
)


def _of_node(noun: str) -> tuple[Rule, ...]:
    """The rules of what belongs to a node, by the node's owner and lessee."""
    return (
        Rule(f"baremetal:{noun}:get", _SEE, f"Show a {noun}"),
        Rule(f"baremetal:{noun}:list", _LIST, f"List {noun}s of the nodes that the own project owns or leases"),
        Rule(f"baremetal:{noun}:list_all", _READER, f"List all {noun}s", beside=f"baremetal:{noun}:list"),
        Rule(f"baremetal:{noun}:create", _ENROLL, f"Create a {noun}"),
        Rule(f"baremetal:{noun}:update", _MANAGE, f"Change a {noun}"),
        Rule(f"baremetal:{noun}:delete", _ENROLL, f"Delete a {noun}"),
    )


def _of_system(noun: str, update: str, scopes: tuple[str, ...] = (SYSTEM, PROJECT)) -> tuple[Rule, ...]:
    """The rules of what belongs to no project."""
    return (
        Rule(f"baremetal:{noun}:get", _READER, f"Show and list: {noun}", scopes, at_once=True),
        Rule(f"baremetal:{noun}:create", _ADMIN, f"Create: {noun}", scopes, at_once=True),
        Rule(f"baremetal:{noun}:update", update, f"Change: {noun}", scopes, at_once=True),
        Rule(f"baremetal:{noun}:delete", _ADMIN, f"Delete: {noun}", scopes, at_once=True),
    )


_OTHERS = (
    *_of_node("port"),
    *_of_node("portgroup"),
    *_of_system("chassis", _MEMBER, (SYSTEM,)),
    *_of_system("deploy_template", _ADMIN),
    *_of_system("inspection_rule", _ADMIN),
    Rule(
        "baremetal:inspection_rule:list_all",
        _READER,
        "List all inspection rules",
        beside="baremetal:inspection_rule:get",
    ),
    Rule("baremetal:driver:get", _READER, "Show and list drivers", (SYSTEM,), at_once=True),
    Rule("baremetal:driver:get_properties", _READER, "See the properties that a driver knows", (SYSTEM,), at_once=True),
    Rule(
        "baremetal:driver:get_raid_logical_disk_properties",
        _READER,
        "See what a driver's RAID can do",
        (SYSTEM,),
        at_once=True,
    ),
    Rule(
        "baremetal:driver:vendor_passthru",
        _ADMIN,
        "Call what a driver's vendor interface can do",
        (SYSTEM,),
        at_once=True,
    ),
    Rule("baremetal:conductor:get", _READER, "Show and list conductors", at_once=True),
    Rule("baremetal:events:post", _ADMIN, "Tell of events outside", (SYSTEM,), at_once=True),
    Rule("baremetal:volume:get", _SEE, "Show a volume connector or target"),
    Rule("baremetal:volume:list", _LIST, "List volumes of the nodes that the own project owns or leases"),
    Rule("baremetal:volume:list_all", _READER, "List the volumes of all nodes", beside="baremetal:volume:list"),
    Rule("baremetal:volume:create", _VOLUMES, "Create a volume connector or target"),
    Rule("baremetal:volume:update", _USE, "Change a volume connector or target"),
    Rule("baremetal:volume:delete", _VOLUMES, "Delete a volume connector or target"),
    Rule(
        "baremetal:volume:view_target_properties",
        f"{_READER} or role:admin",
        "See properties of volume targets; their secrets are masked for everybody",
        beside="baremetal:volume:get",
    ),
    Rule("baremetal:allocation:get", f"{_READER} or (role:reader and rule:is_allocation_owner)", "Show an allocation"),
    Rule("baremetal:allocation:list", _LIST, "List allocations of the own project"),
    Rule("baremetal:allocation:list_all", _READER, "List all allocations", beside="baremetal:allocation:list"),
    Rule("baremetal:allocation:create", f"{_MEMBER} or role:member", "Create an allocation of the own project"),
    Rule(
        "baremetal:allocation:create_restricted",
        _MEMBER,
        "Create an allocation of any owner, on any node",
        beside="baremetal:allocation:create",
    ),
    Rule("baremetal:allocation:update", _OWN_ALLOCATION, "Change an allocation"),
    Rule("baremetal:allocation:delete", _OWN_ALLOCATION, "Delete an allocation"),
    Rule(
        "baremetal:runbook:get",
        f"{_READER} or (role:reader and (rule:is_runbook_owner or True:%(runbook.public)s)) or role:service",
        "Show a runbook; public ones can be shown by everybody",
    ),
    Rule("baremetal:runbook:list", _LIST, "List runbooks of the own project, and public ones"),
    Rule("baremetal:runbook:list_all", _READER, "List all runbooks", beside="baremetal:runbook:list"),
    Rule("baremetal:runbook:create", f"{_MEMBER} or role:manager or role:service", "Create a runbook", at_once=True),
    Rule("baremetal:runbook:update", _OWN_RUNBOOK, "Change a runbook"),
    Rule(
        "baremetal:runbook:update:public",
        _MEMBER,
        "Change whether a runbook is public",
        beside="baremetal:runbook:update",
    ),
    Rule("baremetal:runbook:update:owner", _MEMBER, "Change the owner of a runbook", beside="baremetal:runbook:update"),
    Rule("baremetal:runbook:delete", _OWN_RUNBOOK, "Delete a runbook"),
    Rule("baremetal:runbook:use", _OWN_RUNBOOK, "Clean or service a node by a runbook", beside=_PROVISION),
)

_OWN = (
    Rule("ingot:node:clean_steps:get", _SEE, "List the clean steps of a node"),
    Rule("ingot:node:plan:get", _USE, "See the plan of a deployment, cleaning or servicing"),
    Rule("ingot:node:timeline:get", _SEE_INSIDE, "See runs and their steps"),
    Rule("ingot:node:maintenance:get", _SEE_INSIDE, "See who keeps a node in maintenance, and why"),
    Rule("ingot:node:logs:get", _SEE_INSIDE, "Read logs of agents"),
    Rule("ingot:run:get", _SEE_INSIDE, "See one run"),
    Rule("ingot:events:get", _READER, "Follow the events of all nodes", at_once=True),
    Rule("ingot:description:get", "", "Read the description of this API: everybody who has a token", at_once=True),
    Rule(
        "ingot:bulk:create",
        "role:member or role:service",
        "One verb on many nodes; each node is asked the rule of the verb",
        at_once=True,
    ),
)

EVERY = (*_NODES, *_OTHERS, *_OWN)

RULES: dict[str, Rule] = {rule.name: rule for rule in EVERY}
"""By name."""
