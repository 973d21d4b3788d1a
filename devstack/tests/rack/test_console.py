"""The text of a serial console: bytes in pieces become lines."""

import testtools

from ingot.rack.console import LONGEST, ConsoleText


class ConsoleTextTest(testtools.TestCase):
    def lines(self, *pieces: bytes) -> list[str]:
        text = ConsoleText()
        return [line for piece in pieces for line in text.feed(piece)] + text.end()

    def test_lines_come_when_they_are_complete(self) -> None:
        text = ConsoleText()
        self.assertEqual(["one"], text.feed(b"one\r\n\r\ntw"))
        self.assertEqual(["two"], text.feed(b"o\n"))
        self.assertEqual([], text.end())

    def test_who_asks_something_is_seen_before_the_line_ends(self) -> None:
        text = ConsoleText()
        text.feed(b"one\r\n\x1b[1mlogin: \x1b[")
        self.assertEqual("login:", text.unfinished)
        self.assertEqual(["login: me"], text.feed(b"0mme\r\n"))
        self.assertEqual("", text.unfinished)

    def test_the_rest_comes_at_the_end(self) -> None:
        self.assertEqual(["login:"], self.lines(b"login: "))

    def test_a_firmware_that_paints_its_screen(self) -> None:
        painted = b"\x1b[2J\x1b[01;01H\x1b[0m\x1b[37mBoot\x1b[40m order\x1b[05;03HDisk 1\x1b[=3h"
        self.assertEqual(["Boot order", "Disk 1"], self.lines(painted))

    def test_cut_anywhere_it_is_the_same(self) -> None:
        whole = "\x1b[2Jgr\u00fcn\x1b(B \x1b[1mfett\x1bc\r\nend\x1b[3;4H".encode()
        for cut in range(len(whole)):
            self.assertEqual(["gr\u00fcn fett", "end"], self.lines(whole[:cut], whole[cut:]), cut)

    def test_what_never_ends_its_line_comes_in_parts(self) -> None:
        self.assertEqual([LONGEST, LONGEST, 7], [len(line) for line in self.lines(b"x" * (2 * LONGEST + 7))])

    def test_tokens_of_agents_are_not_for_logs(self) -> None:
        asked = b"GET /v1/commands?wait=true&agent_token=S3cr3t_-x&a=b HTTP/1.1\n"
        self.assertEqual(["GET /v1/commands?wait=true&agent_token=***&a=b HTTP/1.1"], self.lines(asked))

    def test_bytes_that_are_no_text(self) -> None:
        self.assertEqual(["a\ufffdb"], self.lines(b"\x07a\xff\x00b\n"))
