"""Rows are records of the models: plain objects with the columns that were read."""

import copy
import pickle

import sqlalchemy as sa

from ingot.common import interfaces
from ingot.db import models, node_lists, nodes, ports
from tests import database


class Records(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.node = database.make_node(self.db, name="r1u1", driver_info={"ipmi_password": "s3cret"})

    def test_are_what_queries_return(self) -> None:
        port = database.make_port(self.db, self.node)

        (listed,) = ports.PORTS.list_of_node(self.db, self.node.id)
        (key,) = node_lists.list_ring_keys(self.db)

        self.assertIsInstance(nodes.get(self.db, "r1u1"), models.Node)
        self.assertEqual((models.Port, port.id), (type(listed), listed.id))
        self.assertEqual({"uuid", "driver", "conductor_group"}, set(key.as_dict()))

    def test_say_which_columns_were_not_read(self) -> None:
        narrow = nodes.get(self.db, "r1u1", ("uuid",))

        refusal = self.assertRaises(AttributeError, getattr, narrow, "driver_info")
        self.assertIn("driver_info was not read", str(refusal))
        for name in ("id", "uuid", "created_at", "updated_at"):
            self.assertFalse(hasattr(models.Node(name="n"), name), name)

    def test_can_be_copied_compared_and_pickled(self) -> None:
        for twin in (copy.copy(self.node), copy.deepcopy(self.node), pickle.loads(pickle.dumps(self.node))):  # noqa: S301
            self.assertEqual(self.node, twin)
            twin.name = "another"
            self.assertNotEqual(self.node, twin)
        self.assertEqual("r1u1", self.node.name)

    def test_do_not_show_secrets(self) -> None:
        self.assertEqual(f"<{self.node.uuid}>", repr(self.node))

    def test_of_nodes_have_a_column_for_each_type_of_interface(self) -> None:
        self.assertLessEqual(set(interfaces.FIELDS), set(models.table(models.Node).c.keys()))

    def test_cost_no_instrumentation(self) -> None:
        self.assertIsNone(sa.inspect(models.Node, raiseerr=False))
        self.assertNotIn("uuid", vars(models.Node))

    def test_with_further_columns_are_of_the_same_table(self) -> None:
        class Counted(models.Port):
            number: int

        self.assertIs(models.table(models.Port), models.table(Counted))
        self.assertEqual(3, Counted(uuid="x", number=3).number)
