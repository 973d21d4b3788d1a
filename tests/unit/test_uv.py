"""What uv gets to know of pip's settings."""

import importlib.util
import pathlib
from types import ModuleType

import testtools

PROGRAM = pathlib.Path(__file__).parents[2] / "devstack" / "uv.py"

LISTED = """\
:env:.cert='/etc/ssl/proxy.pem'
:env:.disable-pip-version-check='1'
global.cert='/etc/ssl/other.pem'
global.constraint='/etc/pip/constraints.txt'
global.extra-index-url='\\nfile:///srv/one/simple\\nfile:///srv/two/simple'
global.find-links='/srv/wheels /srv/more'
global.index-url='https://first.example.com/simple'
install.index-url='https://mirror.example.com/simple'
"""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("devstack_uv", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SettingsTest(testtools.TestCase):
    def test_they_are_carried_over_and_the_nearest_goes_first(self) -> None:
        expected = {
            "SSL_CERT_FILE": "/etc/ssl/proxy.pem",
            "UV_CONSTRAINT": "/etc/pip/constraints.txt",
            "UV_DEFAULT_INDEX": "https://mirror.example.com/simple",
            "UV_FIND_LINKS": "/srv/wheels,/srv/more",
            "UV_INDEX": "file:///srv/one/simple file:///srv/two/simple",
        }
        self.assertEqual(expected, load().translate(LISTED))

    def test_variables_of_uv_itself_go_first(self) -> None:
        found = load().environment({"UV_DEFAULT_INDEX": "https://own.example.com/simple"})
        self.assertEqual("https://own.example.com/simple", found["UV_DEFAULT_INDEX"])
