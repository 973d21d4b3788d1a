"""How pages of the guides are read, and what they show is compared; ``tests/gate/pages`` types them."""

import pathlib

import testtools

from tests.gate.pages import shown, typed

SOURCE = pathlib.Path(__file__).parents[2] / "doc" / "source"
PAGE = """
Title
=====

.. console: site

   $ pretend NODE
   bmc.example.org => $ADDRESS

Text.

.. code-block:: console

   $ baremetal node set NODE \\
       --driver-info address=bmc.example.org
   Done, 1be26c0b-03f2-4d2e-ae87-c02d7f33c123
   ...

   $ cat > file <<'END'
   > one
   >
   >   two
   > END

.. console: site

   exit 2

.. code-block:: console

   $ false

.. console: elsewhere: It needs a switch.

.. code-block:: console

   $ ping switch
"""


class ReadTest(testtools.TestCase):
    def test_commands_come_in_order_with_what_is_shown(self) -> None:
        site, elsewhere = typed.read(PAGE)
        self.assertEqual(("site", None), (site.environment, site.reason))
        self.assertEqual(("elsewhere", "It needs a switch."), (elsewhere.environment, elsewhere.reason))
        self.assertEqual(
            [
                ("pretend NODE", [], 0),
                (
                    "baremetal node set NODE \\\n    --driver-info address=$ADDRESS",
                    ["Done, 1be26c0b-03f2-4d2e-ae87-c02d7f33c123", "..."],
                    0,
                ),
                ("cat > file <<'END'\none\n\n  two\nEND", [], 0),
                ("false", [], 2),
            ],
            [(command.text, command.shown, command.status) for command in site.commands],
        )
        self.assertEqual(3, typed.count_blocks(PAGE))

    def test_what_would_not_be_typed_is_refused(self) -> None:
        block = ".. code-block:: console\n\n   $ true\n"
        for page, said in (
            (block, "line 1: no comment"),
            (".. console: site\n\n   true\n", "line 3: 'true' is no command"),
            (".. code-block:: bash\n\n   true\n", "line 1"),
            ("Text::\n\n   $ true\n", "line 3: a prompt outside"),
            (".. console: site\n\n.. code-block:: console\n\n   output\n", "line 5: output before"),
        ):
            error = self.assertRaises(typed.PageError, typed.read, page)
            self.assertIn(said, str(error))


class InstallationTest(testtools.TestCase):
    def test_an_empty_debian_gets_lists_of_packages_before_packages(self) -> None:
        """The one that these pages are typed in has the packages: there it works without lists."""
        pages = [page for page in sorted(SOURCE.rglob("*.rst")) if "rom an empty Debian" in page.read_text()]
        self.assertNotEqual([], pages)
        for page in pages:
            commands = [one.text for section in typed.read(page.read_text()) for one in section.commands]
            self.assertEqual("apt-get update", next(text for text in commands if "apt-get" in text), page.name)


class ShownTest(testtools.TestCase):
    def test_lines_come_in_order_and_others_between_them(self) -> None:
        printed = "first  line\nanother\nsecond line\n"
        self.assertIsNone(shown.find_difference(["first line", "second line"], printed))
        self.assertEqual("first line", shown.find_difference(["second line", "first line"], printed))
        self.assertEqual("third", shown.find_difference(["first ... line", "third"], printed))

    def test_what_differs_each_time_may_differ(self) -> None:
        line = "node 1be26c0b-03f2-4d2e-ae87-c02d7f33c123 since 2026-11-22T10:00:07.120000+00:00, 12.5 s"
        same = "node 00000000-03f2-4d2e-ae87-c02d7f33c123 since 2031-01-02T11:00:07+00:00, 3 s"
        self.assertIsNone(shown.find_difference([line], same))
        for other in (same.replace("node", "port"), same.replace("3 s", "3 m"), same.replace("2031-", "2031")):
            self.assertEqual(line, shown.find_difference([line], other))

    def test_what_is_shown_is_text_and_no_pattern(self) -> None:
        self.assertEqual("a.c", shown.find_difference(["a.c"], "abc"))
