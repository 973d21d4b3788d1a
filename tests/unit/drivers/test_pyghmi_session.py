"""What Ingot relies on of pyghmi's private code is there, and is what was compared."""

import hashlib
import importlib.metadata
import inspect
import pathlib
import re
from typing import Any

import testtools
from pyghmi.ipmi.private import simplesession

from ingot.drivers.ipmi import pyghmi_session

ROOT = pathlib.Path(__file__).parents[3]
OLDEST_COMPARED, NEWEST_COMPARED = "1.5.70", "1.6.19"
"""The versions of pyghmi whose methods have the fingerprints below; the tests see the installed version only."""

# Methods that pyghmi_session overrides or calls, and those of pyghmi that call the overridden ones or set the
# attributes that are read: each with the beginning of the SHA-256 of its source.
FINGERPRINTS: dict[str, str] = {
    "__init__": "c184b0daa791553a",
    "_add_request_entry": "b0f4c45b5fb95671",
    "_assignsocket": "4e83e49beeb6eb96",
    "_initsession": "3f7f6f496f641068",
    "_get_channel_auth_cap": "057629f81aa81310",
    "_get_session_challenge": "09eeb81e2946cc49",
    "_got_channel_auth_cap": "d7c7597e88da77ea",
    "_got_rakp2": "e9f53bc1e9b1015b",
    "_got_rakp4": "68505eaf28a1a543",
    "_handle_ipmi2_packet": "554c745d749bff3a",
    "_handle_ipmi_packet": "4927cc819d78f38d",
    "_make_ipmi_payload": "b756c2b4af49c208",
    "_open_rmcpplus_request": "641a80748b467720",
    "_parse_ipmi_payload": "dd41db89d534af21",
    "_parse_payload": "895066d5899221de",
    "_relog": "777f1984d4774855",
    "_req_priv_level": "7b024ea04334f76a",
    "_send_ipmi_net_payload": "66aeb9fb3c5877ad",
    "_send_rakp1": "7a6a3a1781f6210a",
    "_send_rakp3": "8354e3e679f45314",
    "_timedout": "eb12769785e069ee",
    "_xmit_packet": "09b48da063e7f223",
    "awaitresponse": "a58923079749240d",
    "login": "87e5725adcdd4ff6",
    "logout": "f804c362c8d568e1",
    "onlogon": "80e23960ad8c449e",
    "process_pktqueue": "55a49f4b06d97189",
    "raw_command": "27db8e6cedcb3f52",
    "send_payload": "62e78a92ab01d658",
    "wait_for_rsp": "a620b3e214b1b571",
}

OVERRIDDEN = {
    "_get_session_challenge",
    "_make_ipmi_payload",
    "_open_rmcpplus_request",
    "_send_rakp3",
    "_xmit_packet",
    "awaitresponse",
    "process_pktqueue",
    "wait_for_rsp",
}
CHANGED = (
    "pyghmi changed {name}: compare it with version " + NEWEST_COMPARED + ", adapt drivers/ipmi/pyghmi_session.py, run "
    "tests.functional.drivers.test_ipmi, then write the new value here and the version in setup.cfg"
)


def fingerprint(method: Any) -> str:
    return hashlib.sha256(inspect.getsource(method).strip().encode()).hexdigest()[:16]


def mismatches(session: type) -> list[str]:
    """Return what is missing or differs, a message each."""
    found = []
    for name, expected in FINGERPRINTS.items():
        method = session.__dict__.get(name)
        if method is None:
            found.append(f"pyghmi has no {name} anymore, which drivers/ipmi/pyghmi_session.py relies on")
        elif fingerprint(method) != expected:
            found.append(CHANGED.format(name=name))
    return found


class TestPyghmiInternals(testtools.TestCase):
    def test_each_method_of_the_installed_version_is_the_one_that_was_compared(self) -> None:
        self.assertEqual([], mismatches(simplesession.Session))

    def test_a_missing_or_changed_method_is_named(self) -> None:
        class Changed:
            def _relog(self) -> None:
                """Replace pyghmi's method."""

        found = mismatches(Changed)
        self.assertEqual(len(FINGERPRINTS), len(found))
        self.assertIn(CHANGED.format(name="_relog"), found)
        self.assertIn("pyghmi has no raw_command anymore", "\n".join(found))

    def test_every_private_name_that_is_used_was_compared(self) -> None:
        source = inspect.getsource(pyghmi_session.Session)
        used = set(re.findall(r"\b(?:self|super\(\))\.(\w+)\(", source)) - {"close", "request"}
        mine = vars(pyghmi_session.Session)
        own = {name for name in mine if inspect.isfunction(mine[name]) and name in vars(simplesession.Session)}
        self.assertEqual(OVERRIDDEN | {"__init__"}, own)
        self.assertEqual(set(), (used | own) - set(FINGERPRINTS))

    def test_setup_cfg_allows_what_lies_between_the_compared_versions(self) -> None:
        (line,) = re.findall(r"^ +pyghmi(.*)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
        self.assertEqual(f">={OLDEST_COMPARED},<={NEWEST_COMPARED}", line)
        known = (OLDEST_COMPARED, importlib.metadata.version("pyghmi"), NEWEST_COMPARED)
        oldest, installed, newest = (tuple(map(int, version.split("."))) for version in known)
        self.assertTrue(oldest <= installed <= newest, known)

    def test_nothing_else_uses_pyghmi(self) -> None:
        users = [path.name for path in (ROOT / "drivers").rglob("*.py") if "import simplesession" in path.read_text()]
        self.assertEqual(["pyghmi_session.py"], users)
