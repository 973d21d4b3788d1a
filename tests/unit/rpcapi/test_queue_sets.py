"""Conductors of two releases are reached, each by queues that it knows."""

import testtools
from oslo_config import cfg
from oslo_messaging import conffixture

from ingot.common.conf import broker
from ingot.db import schema
from ingot.rpcapi import queue_sets, versions
from tests import database


class QueueSets(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.useFixture(conffixture.ConfFixture(self.conf, transport_url="rabbit://one:1,two:2/"))
        broker.register(self.conf)

    def test_the_release_before_is_reached_by_its_queues(self) -> None:
        self.assertEqual(queue_sets.CLASSIC, queue_sets.for_version(versions.RELEASES["0.0"].rpc))
        self.assertEqual(queue_sets.QUORUM, queue_sets.for_version(versions.RPC_VERSION))
        self.assertEqual(queue_sets.QUORUM, queue_sets.for_version("1.10"))

    def test_the_queue_sets_share_neither_queues_nor_exchange(self) -> None:
        targets = [queue_set.target(self.conf) for queue_set in queue_sets.QUEUE_SETS]

        self.assertEqual(2, len({target.topic for target in targets}))
        self.assertEqual(2, len({target.exchange for target in targets}))

    def test_queues_of_the_release_before_are_of_the_kind_that_it_made(self) -> None:
        self.assertEqual(dict.fromkeys(broker.QUORUM, "false"), queue_sets.CLASSIC.url(self.conf).query)
        self.assertEqual({}, queue_sets.QUORUM.url(self.conf).query)
        self.assertTrue(self.conf[broker.GROUP].rabbit_quorum_queue)

    def test_what_an_operator_says_of_queues_counts(self) -> None:
        self.conf.set_override("transport_url", "rabbit://one:1/?rabbit_quorum_queue=true")

        query = queue_sets.CLASSIC.url(self.conf).query

        self.assertEqual({"rabbit_quorum_queue": "true", "rabbit_transient_quorum_queue": "false"}, query)

    def test_options_of_rabbitmq_are_not_given_to_others(self) -> None:
        self.conf.set_override("transport_url", "fake:/")

        self.assertEqual({}, queue_sets.CLASSIC.url(self.conf).query)


class Served(database.TestCase):
    def test_conductors_listen_for_the_release_before_until_it_is_gone(self) -> None:
        self.assertEqual((queue_sets.QUORUM,), queue_sets.select_to_serve(self.db))

        schema.stamp(self.db, schema.required_revision())

        self.assertEqual(queue_sets.QUEUE_SETS, queue_sets.select_to_serve(self.db))
