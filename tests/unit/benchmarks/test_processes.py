"""What Linux says of processes is read as it is meant, descendants and all."""

import os
import subprocess
import sys

import testtools

from benchmarks import processes

STAT = "4711 (a (strange) name) S 815 4711 4711 0 -1 4194560 100 0 0 0 150 50 7 7 20 0 1 0 100 1000 10 " + "0 " * 29


class ProcessesTest(testtools.TestCase):
    def test_a_name_with_parentheses_does_not_move_the_fields(self) -> None:
        self.assertEqual((815, 200 / processes.TICKS_PER_S), processes.parse_stat(STAT))

    def test_values_are_found_by_their_whole_names(self) -> None:
        text = "Pss_Anon:  7 kB\nPss:      12 kB\n"
        self.assertEqual([12, 7, 0], [processes.parse_kib(text, name) for name in ("Pss", "Pss_Anon", "Rss")])

    def test_all_descendants_count_and_those_that_are_gone_do_not(self) -> None:
        parents = {1: 0, 10: 1, 11: 10, 12: 11, 20: 1}
        self.assertEqual({10, 11, 12}, processes.descendants(parents, [10]))
        self.assertEqual({10, 11, 12, 20}, processes.descendants(parents, [10, 20, 99]))

    def test_a_process_that_began_in_between_counts(self) -> None:
        self.assertEqual(2.5, processes.cpu_between({1: 1.0, 2: 5.0}, {1: 2.0, 3: 1.5}))

    def test_this_process_and_its_child_are_seen(self) -> None:
        command = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout and child.stdin
            child.stdout.readline()
            self.assertEqual({os.getpid(), child.pid}, {os.getpid(), child.pid} & set(processes.cpu([os.getpid()])))
            found = processes.memory([child.pid])
            self.assertEqual(1, found["processes"])
            self.assertGreater(found["rss_mib"], found["pss_mib"])
            child.stdin.close()
