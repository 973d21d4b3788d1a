"""Entry points of packages that are not installed: what tests plug in as driver authors would."""

import importlib.metadata
from typing import Any

from ingot.common import interfaces
from ingot.drivers.generic import fake
from ingot.drivers.interfaces.hardware_type import ClassicDriver
from ingot.drivers.loading import entry_points

_GROUPS = {
    "types": entry_points.TYPES,
    "classic": entry_points.CLASSIC,
    **{kind: entry_points.interface_group(kind) for kind in interfaces.TYPES},
}


class FixedFake(ClassicDriver):
    """A machine of which only power, management, boot and deploy are known, all of them fake."""

    boot = fake.FakeBoot
    deploy = fake.FakeDeploy
    management = fake.FakeManagement
    power = fake.FakePower
    vendor = fake.FakeVendor


def here(cls: type) -> str:
    """Return the name of a test's class as an entry point has it."""
    return entry_points.class_path(cls)


def with_plugins(**plugins: str) -> Any:
    """Return the product's entry points and, as group_name=target, more.

    A group is types, classic or a kind of interface.
    """

    def source(group: str) -> list[importlib.metadata.EntryPoint]:
        extra = [
            importlib.metadata.EntryPoint(name.partition("_")[2], target, group)
            for name, target in plugins.items()
            if _GROUPS[name.partition("_")[0]] == group
        ]
        return [*entry_points.list_installed(group), *extra]

    return source


CLASSIC = with_plugins(classic_fixed=here(FixedFake))
"""With one classic driver, ``fixed``."""
