"""How long a process waits for conductors that do not answer, and with how many threads."""

import threading

import testtools

from ingot.common import errors
from ingot.rpcapi import client
from tests import conductor_case

MOST = 2


class TestPatience(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.moment = 0.0
        self.patience = client.Patience(MOST, lambda: self.moment)

    def call(self, host: str, answers: bool = True) -> None:
        """Call a conductor that answers at once or never.

        :raises ConductorAway: it gives no answer.
        """
        with self.patience.wait_for(host):
            if not answers:
                raise errors.ConductorAway(what=host, reason="no answer")

    def refused(self, host: str, answers: bool = True) -> str:
        return self.assertRaises(errors.ConductorAway, self.call, host, answers).message

    def test_a_silent_conductor_is_asked_once_in_a_while(self) -> None:
        self.refused("one", answers=False)
        self.assertIn("lately", self.refused("one"))
        self.call("another")
        self.moment = 5.0
        self.assertIn("no answer", self.refused("one", answers=False))
        self.moment = 9.9
        self.assertIn("lately", self.refused("one"))
        self.moment = 10.0
        for _ in range(3):
            self.call("one")

    def test_one_call_finds_out_whether_it_answers_again(self) -> None:
        self.refused("one", answers=False)
        self.moment = 5.0
        with self.patience.wait_for("one"):
            self.assertIn("lately", self.refused("one"))
        self.call("one")

    def test_only_some_threads_may_wait(self) -> None:
        answered = threading.Event()
        waiting = threading.Semaphore(0)

        def wait(host: str) -> None:
            with self.patience.wait_for(host):
                waiting.release()
                answered.wait(conductor_case.PATIENCE)

        threads = [threading.Thread(target=wait, args=(host,)) for host in ("one", "two")]
        for thread in threads:
            thread.start()
            self.assertTrue(waiting.acquire(timeout=conductor_case.PATIENCE))
        self.assertIn("too many requests", self.refused("three"))
        answered.set()
        for thread in threads:
            thread.join()
        self.call("three")

    def test_an_error_that_a_conductor_answers_with_is_an_answer(self) -> None:
        for error in (errors.ServiceUnavailable(what="The database", reason="it is away"), errors.Invalid("wrong")):
            with self.assertRaises(type(error)), self.patience.wait_for("one"):
                raise error
            self.call("one")
