"""Makes Nova's databases, with one cell and servers in it: ``nova_database.py --config-file FILE SERVER...``.

Run in Nova's environment. The servers are off, and belong to the compute service ``compute-0``.
"""

import sys
from typing import Any

from nova import monkey_patch

monkey_patch.patch(backend="threading")  # as Nova's services do, before anything else is imported

from nova import config, context, objects  # noqa: E402
from nova.compute import power_state, vm_states  # noqa: E402
from nova.db import migration  # noqa: E402
from oslo_utils import uuidutils  # noqa: E402

HOST = "compute-0"


def make_cell(ctxt: context.RequestContext) -> Any:
    """Return a cell whose database and message bus are those of the configuration."""
    cell = objects.CellMapping(
        ctxt,
        uuid=uuidutils.generate_uuid(),
        name="cell1",
        database_connection=config.CONF.database.connection,
        transport_url=config.CONF.transport_url,
    )
    cell.create()
    return cell


def make_server(ctxt: context.RequestContext, cell: Any, uuid: str) -> None:
    owner = {"user_id": "operator", "project_id": "project"}
    flavor = objects.Flavor(
        ctxt,
        **{"flavorid": "metal", "name": "metal", "vcpus": 1, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0},
        **{"swap": 0, "rxtx_factor": 1.0, "extra_specs": {}},
    )
    with context.target_cell(ctxt, cell) as inside:
        objects.Instance(
            inside,
            **{"uuid": uuid, "host": HOST, "display_name": "render", "hostname": "render", "flavor": flavor, **owner},
            **{"system_metadata": {}, "metadata": {}},
            **{"vm_state": vm_states.STOPPED, "power_state": power_state.SHUTDOWN},
        ).create()
    objects.InstanceMapping(ctxt, instance_uuid=uuid, cell_mapping=cell, **owner).create()


def main() -> None:
    config.parse_args(sys.argv[:3])
    objects.register_all()
    for database in ("api", "main"):
        migration.db_sync(database=database)
    ctxt = context.RequestContext("operator", "project", is_admin=True)
    cell = make_cell(ctxt)
    for uuid in sys.argv[3:]:
        make_server(ctxt, cell, uuid)


if __name__ == "__main__":
    main()
