"""What ports of Ethernet can do and are, by the numbers of IANA-MAU-MIB: dot3MauType and IANAifMauAutoNegCapBits."""

from collections.abc import Mapping

MODES = (
    *(None, "10BASE-T hdx", "10BASE-T fdx", "10BASE-T4"),
    *("100BASE-TX hdx", "100BASE-TX fdx", "100BASE-T2 hdx", "100BASE-T2 fdx"),
    *("PAUSE fdx", "Asym PAUSE fdx", "Sym PAUSE fdx", "Asym and Sym PAUSE fdx"),
    *("1000BASE-X hdx", "1000BASE-X fdx", "1000BASE-T hdx", "1000BASE-T fdx"),
)
"""What a port offers when it negotiates, by bit, the most significant first."""

_HALF, _FULL = "half duplex", "full duplex"


def _list_both(first: int, *names: str) -> dict[int, str]:
    """Return the types of which there is one for each way to use a cable."""
    both = [f"{name} {duplex}" for name in names for duplex in (_HALF, _FULL)]
    return dict(enumerate(both, first))


TYPES: Mapping[int, str] = {
    **dict(enumerate(("Unknown", "AUI", "10BASE-5", "FOIRL", "10BASE-2", "10BASE-T duplex mode unknown"))),
    **dict(enumerate(("10BASE-FP", "10BASE-FB", "10BASE-FL duplex mode unknown", "10BROAD36"), 6)),
    **_list_both(10, "10BASE-T", "10BASE-FL"),
    14: "100 BASE-T4",
    **_list_both(15, "100BASE-TX", "100BASE-FX", "100BASE-T2"),
    **_list_both(21, "1000BASE-X", "1000BASE-LX", "1000BASE-SX", "1000BASE-CX", "1000BASE-T"),
    **dict(enumerate((f"10GBASE-{name}" for name in ("X", "LX4", "R", "ER", "LR", "SR", "W", "EW", "LW", "SW")), 31)),
    **dict(enumerate(("10GBASE-CX4", "2BASE-TL", "10PASS-TS", "100BASE-BX10D", "100BASE-BX10U", "100BASE-LX10"), 41)),
    **dict(enumerate((f"1000BASE-{name}" for name in ("BX10D", "BX10U", "LX10")), 47)),
    **dict(enumerate((f"1000BASE-{name}" for name in ("PX10D", "PX10U", "PX20D", "PX20U")), 50)),
    **dict(enumerate(("10GBASE-T", "10GBASE-LRM", "1000BASE-KX", "10GBASE-KX4", "10GBASE-KR"), 54)),
    **dict(enumerate((f"40GBASE-{name}" for name in ("KR4", "CR4", "SR4", "FR", "LR4")), 70)),
    **dict(enumerate((f"100GBASE-{name}" for name in ("CR10", "SR10", "LR4", "ER4")), 75)),
    98: "100GBASE-CR4",
    99: "100GBASE-KR4",
    102: "100GBASE-SR4",
}
"""What a port is."""
