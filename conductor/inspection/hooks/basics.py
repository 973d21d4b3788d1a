"""The hooks for what every machine has: whether it was inspected at all, processors, memory, boot mode."""

from collections.abc import Mapping
from typing import ClassVar

from ingot.common import errors
from ingot.conductor.inspection import facts
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.inspection.hooks.base import InspectionHook
from ingot.drivers.interfaces import boot


class RamdiskError(InspectionHook):
    """The hook ``ramdisk-error``: fails where the agent reports an error."""

    def run(self, draft: Draft) -> None:
        error = draft.plugin_data.get("error")
        if error:
            raise errors.StepFailed(f"the agent reported an error: {str(error)[:2000]}")


class _PropertiesHook(InspectionHook):
    """Makes properties of facts of the inventory, where they are there.

    :cvar places: part of the inventory and name of the fact, by property.
    """

    places: ClassVar[Mapping[str, tuple[str, str]]]

    def run(self, draft: Draft) -> None:
        for name, place in self.places.items():
            value = facts.read_fact(draft, *place)
            if isinstance(value, dict | list) or len(str(value)) > facts.LONGEST_FACT:
                raise errors.StepFailed(
                    f"the inventory's {'.'.join(place)} cannot be the property {name}: it must be a number, or a text "
                    f"of {facts.LONGEST_FACT} characters at most"
                )
            if value is not None:
                draft.node["properties"][name] = value


class Architecture(_PropertiesHook):
    """The hook ``architecture``: sets the properties cpu_arch and cpus."""

    places: ClassVar = {"cpu_arch": ("cpu", "architecture"), "cpus": ("cpu", "count")}


class CPUs(_PropertiesHook):
    """The hook ``cpus``: sets the property cpus, as ``architecture`` does, too."""

    places: ClassVar = {"cpus": ("cpu", "count")}


class Memory(_PropertiesHook):
    """The hook ``memory``: sets the property memory_mb."""

    places: ClassVar = {"memory_mb": ("memory", "physical_mb")}


class BootMode(InspectionHook):
    """The hook ``boot-mode``: sets the capability boot_mode."""

    def run(self, draft: Draft) -> None:
        mode = facts.read_fact(draft, "boot", "current_boot_mode")
        if mode not in (None, *boot.BOOT_MODES):
            raise errors.StepFailed(
                f"the inventory's boot.current_boot_mode is {str(mode)[: facts.LONGEST_FACT]!r}: it must be one of "
                f"{', '.join(boot.BOOT_MODES)}"
            )
        if mode is not None:
            draft.set_capability("boot_mode", str(mode))


class CPUCapabilities(InspectionHook):
    """The hook ``cpu-capabilities``: sets the capabilities that ``[inspector] cpu_capabilities`` has for flags."""

    def run(self, draft: Draft) -> None:
        flags = facts.read_fact(draft, "cpu", "flags")
        known = {flag for flag in flags if isinstance(flag, str)} if isinstance(flags, list) else set()
        for flag, capability in self.conf.inspector.cpu_capabilities.items():
            if flag in known:
                draft.set_capability(capability, "true")
