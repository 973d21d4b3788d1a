"""Each contract on each implementation; ``lacks`` has what one of them cannot do."""

import functools
from collections.abc import Callable
from typing import Any

import testtools

from tests.functional.contract import bios, boot, firmware, inspect, lacks, management, power, raid, vendor
from tests.functional.contract.base import ContractTest
from tests.functional.contract.benches import BENCHES

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


def _tests(contract: type) -> list[str]:
    return [name for name in dir(contract) if name.startswith("test_")]


def _expect(test: Callable[[Any], None], row: lacks.Lack) -> Callable[[Any], None]:
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
            self.fail(f"it can do this, so its row in lacks.py is out of date: {row.reason}")

    return run


def _build(contract: type[ContractTest], bench: type) -> dict[str, Any]:
    """Return what the contract's class has of its own for a bench."""
    found: dict[str, Any] = {"bench_class": bench, "__module__": __name__}
    for name in _tests(contract):
        row = lacks.find(bench.__name__, contract.__name__, name)
        if row is not None:
            found[name] = _expect(getattr(contract, name), row) if row.said is not None else None
    return found


for _contract in CONTRACTS:
    for _bench in BENCHES:
        _own = _build(_contract, _bench)
        if any(_own.get(_test, True) is not None for _test in _tests(_contract)):
            _name = f"{_contract.__name__.removesuffix('Contract')}On{_bench.__name__}"
            globals()[_name] = type(_name, (_contract,), _own)
del _contract  # or it would be taken for one of this module's own


class LacksTest(testtools.TestCase):
    def test_each_row_is_about_a_test_and_says_why(self) -> None:
        used = {
            lacks.find(bench.__name__, contract.__name__, test)
            for contract in CONTRACTS
            for bench in BENCHES
            for test in _tests(contract)
        }
        self.assertEqual([], [row for row in lacks.LACKS if row not in used or len(row.reason.split()) < 4])
