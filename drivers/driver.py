"""The driver of one task: links to interface singletons, as the node's fields say (specification 004)."""

from typing import Any

from ingot.common import interfaces


class BareDriver:
    """Thin on purpose: one is made for each task. An interface that is not enabled any more is None.

    :ivar name: what the node's field ``driver`` says: a hardware type or a classic driver.
    """

    __slots__ = (*interfaces.KINDS, "name")

    # Of the kind's interface class, or None; not said here, as those classes are built on tasks, and tasks on this.
    bios: Any
    boot: Any
    console: Any
    deploy: Any
    firmware: Any
    inspect: Any
    management: Any
    network: Any
    power: Any
    raid: Any
    rescue: Any
    storage: Any
    vendor: Any

    def __init__(self, name: str, **links: Any) -> None:
        self.name = name
        for kind in interfaces.KINDS:
            setattr(self, kind, links.get(kind))

    def all_interfaces(self) -> list[Any]:
        """The interfaces that are there, in the order of :data:`interfaces.KINDS`."""
        return [link for kind in interfaces.KINDS if (link := getattr(self, kind)) is not None]
