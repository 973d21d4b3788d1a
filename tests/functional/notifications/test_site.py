"""A site tells of a node's life on RabbitMQ: the API and a conductor, one listener, and everything in its order."""

import queue
from typing import Any

import oslo_messaging
from oslo_config import cfg

from ingot.api import app
from ingot.common import states
from ingot.conductor import manager
from ingot.db import nodes
from ingot.notifications import bus
from ingot.rpcapi import client, transport
from tests import api_case, conductor_case, notices, patience
from tests.functional import services

_LIFE = (
    "create.start",
    "create.end",
    "provision_set.start enroll verifying",
    "provision_set.end verifying manageable",
    "provision_set.start manageable cleaning",
    "provision_set.end cleaning available",
    "provision_set.start available deploying",
    "provision_set.end deploying active",
    "maintenance_set.start",
    "maintenance_set.end",
    "delete.start",
    "delete.end",
)


class Listener:
    """An endpoint that writes down what it hears, as one line each."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str] = queue.Queue()

    def info(self, _ctx: Any, _publisher: str, event_type: str, payload: Any, _metadata: Any) -> None:
        data = payload["ironic_object.data"]
        also = " {previous_provision_state} {provision_state}".format(**data) if "event" in data else ""
        self.lines.put(event_type.removeprefix("baremetal.node.") + also)

    error = info


class SiteTest(api_case.ApiCase):
    def configure(self) -> None:
        conductor_case.fake_hardware(self.conf)
        self.conf.set_override("host", api_case.HOST)
        self.topic = services.unique_name("notices")
        self.url = services.broker_url()
        notices.switch_on(self.conf)
        self.conf.set_override("versioned_notifications_topics", [self.topic])
        self.conf.set_override("driver", ["messagingv2"], "oslo_messaging_notifications")
        self.conf.set_override("transport_url", self.url, "oslo_messaging_notifications")

    def listen(self) -> Listener:
        options = cfg.ConfigOpts()
        options([], default_config_files=[])
        bus_of_consumer = oslo_messaging.get_notification_transport(options, self.url)
        heard = Listener()
        target = oslo_messaging.Target(topic=self.topic, exchange=bus.EXCHANGE)
        listener = oslo_messaging.get_notification_listener(bus_of_consumer, [target], [heard], executor="threading")
        listener.start()
        self.addCleanup(bus_of_consumer.cleanup)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        return heard

    def test_the_life_of_a_node(self) -> None:
        heard = self.listen()
        conductor = manager.Conductor(self.conf, self.db)
        local = transport.LocalTransport()
        local.serve(self.conf.host, conductor.endpoint)
        conductor.start()
        self.addCleanup(conductor.stop)
        made = api_case.create_app(self.conf, self.db, client.ConductorClient(self.conf, self.db, local))
        self.addCleanup(made.extensions[app.NOTIFIER].close)
        self.http = made.test_client()
        node = self.node(name="n")["uuid"]
        for verb, state in (("manage", states.MANAGEABLE), ("provide", states.AVAILABLE), ("active", states.ACTIVE)):
            self.good("PUT", f"/v1/nodes/{node}/states/provision", {"target": verb})
            self.wait_for(node, state)
        self.good("PUT", f"/v1/nodes/{node}/maintenance", {})
        self.good("DELETE", f"/v1/nodes/{node}")
        lines = [heard.lines.get(timeout=patience.seconds(60)) for _line in _LIFE]
        # API and conductor send by threads of their own: each keeps its order, and so does each verb.
        self.assertEqual(sorted(_LIFE), sorted(lines))
        self.assertEqual(list(_LIFE[:3]), lines[:3])

    def wait_for(self, node: str, state: str) -> None:
        def look() -> bool:
            now = nodes.get(self.db, node)
            return now.provision_state == state and now.reservation is None

        conductor_case.eventually(look, f"the node is {state}")
