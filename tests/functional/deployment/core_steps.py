"""The core steps of a deployment, and which steps ran."""

from typing import Any

CORE = [
    ("deploy", 100),
    ("write_image", 80),
    ("prepare_instance_boot", 60),
    ("tear_down_agent", 40),
    ("switch_to_tenant_network", 30),
    ("boot_instance", 20),
]


def ran(steps: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return (step, priority) of what was done, without what the flow itself did."""
    return [(row["step"], row["priority"]) for row in steps if row["state"] == "done" and row["origin"] != "flow"]
