"""Enters a server into Nova's databases, as one that runs on a compute service; prints its uuid.

Run in Nova's environment, with Nova's configuration file as the only argument after ``--config-file``.
"""

import sys

from nova import config, context, objects
from nova.compute import vm_states

CELL = "cell1"


def main() -> None:
    config.parse_args(sys.argv)
    objects.register_all()
    ctxt = context.RequestContext("operator", "project", is_admin=True)
    (cell,) = [one for one in objects.CellMappingList.get_all(ctxt) if one.name == CELL]
    flavor = objects.Flavor(
        ctxt,
        **{"flavorid": "metal", "name": "metal", "vcpus": 1, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0},
        **{"swap": 0, "rxtx_factor": 1.0, "extra_specs": {}},
    )
    with context.target_cell(ctxt, cell) as inside:
        server = objects.Instance(
            inside,
            **{"user_id": "operator", "project_id": "project", "host": "compute-0", "display_name": "render-1"},
            **{"hostname": "render-1", "system_metadata": {}, "metadata": {}, "vm_state": vm_states.ACTIVE},
            flavor=flavor,
        )
        server.create()
    mapping = objects.InstanceMapping(
        ctxt, instance_uuid=server.uuid, cell_mapping=cell, project_id="project", user_id="operator"
    )
    mapping.create()
    print(server.uuid)


if __name__ == "__main__":
    main()
