"""The API on MariaDB and PostgreSQL: the unit tests whose outcome a database could change, run there again."""

from tests.functional.api import test_contract_replay
from tests.unit.api import (
    test_agent_tokens,
    test_agents,
    test_allocations,
    test_audit,
    test_boot_volumes,
    test_inspection,
    test_lists,
    test_patch,
    test_preconditions,
    test_provision,
    test_requests,
    test_resources,
    test_runbooks,
    test_shards_and_events,
    test_volumes,
)

REPEATED: tuple[type, ...] = (
    test_agent_tokens.LostReply,
    test_agent_tokens.OneBoot,
    test_agents.Heartbeat,
    test_agents.Lookup,
    test_allocations.Backfilling,
    test_allocations.CreatingAllocations,
    test_allocations.GivingNodesBack,
    test_allocations.ReadingAllocations,
    test_audit.TrailTest,
    test_boot_volumes.Tickets,
    test_contract_replay.Replay,
    test_inspection.Inspected,
    test_inspection.InspectionRules,
    test_lists.NodeFilters,
    test_lists.OtherLists,
    test_lists.Pages,
    test_patch.Concurrency,
    test_patch.Rules,
    test_preconditions.Answers,
    test_preconditions.Writing,
    test_provision.Accepting,
    test_provision.OnChildren,
    test_requests.Identifiers,
    test_resources.ChassisTests,
    test_resources.Creating,
    test_resources.Deleting,
    test_resources.DeployTemplates,
    test_resources.Portgroups,
    test_resources.Ports,
    test_resources.Traits,
    test_runbooks.RunbookCrud,
    test_runbooks.RunbookTraits,
    test_runbooks.RunbookRules,
    test_runbooks.UsingRunbooks,
    test_shards_and_events.Shards,
    test_volumes.BootingFromVolumes,
    test_volumes.ChangingVolumes,
    test_volumes.CreatingVolumes,
    test_volumes.DeletingVolumes,
    test_volumes.ReadingVolumes,
)


# Each class once for each server; skipped where there is none.
for _backend in ("mysql", "postgresql"):
    for _repeated in REPEATED:
        _name = f"{_repeated.__name__}On{_backend.capitalize()}"
        globals()[_name] = type(_name, (_repeated,), {"backend": _backend, "__module__": __name__})
