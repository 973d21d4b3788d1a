"""The kinds of hardware interface a node is composed of, and how ties between their steps are broken (all layers)."""

KINDS: tuple[str, ...] = (
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "rescue",
    "storage",
    "vendor",
)

STEP_KINDS: tuple[str, ...] = ("vendor", "power", "management", "firmware", "deploy", "bios", "raid")
"""Interfaces that users, templates and runbooks may name in a step (contract: steps.md)."""

TIE_ORDER: dict[str, int] = {
    kind: rank
    for rank, kind in enumerate(
        (
            "power",
            "management",
            "deploy",
            "firmware",
            "bios",
            "raid",
            "boot",
            "network",
            "storage",
            "inspect",
            "console",
            "rescue",
            "vendor",
        )
    )
}
"""Which interface goes first when priorities are equal: specification 002 names power, management, deploy; the rest is
a fixed order of ours."""


def field(kind: str) -> str:
    """The node's field that names its interface of a kind, e.g. ``power_interface``."""
    return f"{kind}_interface"


FIELDS: tuple[str, ...] = tuple(field(kind) for kind in KINDS)
