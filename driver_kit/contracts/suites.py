"""Makes classes of tests: each contract on each bench, without what an implementation cannot do.

A module of tests takes them into its names, where every test runner finds them::

    globals().update(suites.build(__name__, (PlugBench,), LACKS))
"""

import fnmatch
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ingot.driver_kit.bench import Bench
from ingot.driver_kit.contracts import bios, boot, firmware, inspect, management, power, raid, vendor
from ingot.driver_kit.contracts.base import ContractTest

CONTRACTS: tuple[type[ContractTest], ...] = (
    power.PowerContract,
    management.ManagementContract,
    management.SensorsContract,
    management.SecureBootContract,
    management.VirtualMediaContract,
    bios.BIOSContract,
    bios.RegistryContract,
    firmware.FirmwareContract,
    firmware.UpdatesContract,
    raid.RAIDContract,
    raid.ControllerContract,
    inspect.InspectContract,
    inspect.OutOfBandContract,
    boot.BootContract,
    boot.DeployContract,
    boot.RescueContract,
    boot.ConsoleContract,
    vendor.VendorContract,
    vendor.SubscriptionsContract,
)
"""All contracts. A driver that implements one type of interface names those of its type."""


class Lack(NamedTuple):
    """What an implementation, or the hardware that it is tested on, cannot do.

    :param bench: pattern of the names of benches.
    :param contract: pattern of the names of contracts, and ``test`` one of its tests. The first row that fits counts.
    :param reason: why it cannot be.
    :param said: what the test then fails with, a part of it: it is run, and must fail so. None: it is not run.
    """

    bench: str
    contract: str
    test: str
    reason: str
    said: str | None = None


Lacks = Sequence[Lack]


def build(
    module: str,
    benches: Sequence[type[Bench]],
    lacks: Lacks = (),
    contracts: Sequence[type[ContractTest]] = CONTRACTS,
) -> dict[str, type[ContractTest]]:
    """Return the classes of tests by their names, ``PowerOnPlugBench``.

    :param module: the name of the module that they are for.
    """
    found: dict[str, type[ContractTest]] = {}
    for contract in contracts:
        for bench in benches:
            own = _build(module, contract, bench, lacks)
            if any(own.get(test, True) is not None for test in _list_tests(contract)):
                name = f"{contract.__name__.removesuffix('Contract')}On{bench.__name__}"
                found[name] = type(name, (contract,), own)
    return found


def list_idle(
    benches: Sequence[type[Bench]], lacks: Lacks, contracts: Sequence[type[ContractTest]] = CONTRACTS
) -> list[Lack]:
    """Return the rows that are about no test."""
    used = {
        _find(lacks, bench.__name__, contract.__name__, test)
        for contract in contracts
        for bench in benches
        for test in _list_tests(contract)
    }
    return [row for row in lacks if row not in used]


def _find(lacks: Lacks, bench: str, contract: str, test: str) -> Lack | None:
    """Return the row of a test, if there is one."""
    for row in lacks:
        patterns = ((bench, row.bench), (contract, row.contract), (test, row.test))
        if all(fnmatch.fnmatchcase(name, pattern) for name, pattern in patterns):
            return row
    return None


def _list_tests(contract: type) -> list[str]:
    return [name for name in dir(contract) if name.startswith("test_")]


def _expect(test: Callable[[Any], None], row: Lack) -> Callable[[Any], None]:
    """Return a test that passes if the test of something that is lacking fails, as its row says."""
    assert row.said is not None
    said = row.said

    @functools.wraps(test)
    def run(self: ContractTest) -> None:
        try:
            test(self)
        except Exception as exc:
            if said not in str(exc):
                raise
        else:
            self.fail(f"it can do this, so its row is out of date: {row.reason}")

    return run


def _build(module: str, contract: type[ContractTest], bench: type[Bench], lacks: Lacks) -> dict[str, Any]:
    """Return what the contract's class has of its own for a bench."""
    found: dict[str, Any] = {"bench_class": bench, "__module__": module}
    for name in _list_tests(contract):
        row = _find(lacks, bench.__name__, contract.__name__, name)
        if row is not None:
            found[name] = _expect(getattr(contract, name), row) if row.said is not None else None
    return found
