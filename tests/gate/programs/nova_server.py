"""Nova's API, and the compute service that it hands events to: ``nova_server.py PORT``.

Run in Nova's environment, with Nova's configuration in ``OS_NOVA_CONFIG_DIR``. Both are in one process, as the message
bus between them is the one of oslo.messaging that needs no broker. There is no conductor: compute asks the database.
"""

import socketserver
import sys
from wsgiref import simple_server

PORT = int(sys.argv[1])
sys.argv = ["nova-api"]  # Nova reads it when it is imported

from nova.wsgi import osapi_compute  # noqa: E402, I001 - before anything else of Nova's

import oslo_messaging  # noqa: E402
from nova import rpc  # noqa: E402
from nova.compute import manager, rpcapi  # noqa: E402
from nova.objects import base  # noqa: E402

HOST = "compute-0"


def serve_events() -> None:
    """Start Nova's compute manager, with its driver for bare metal, at its topics of the message bus."""
    endpoint = manager.ComputeManager(host=HOST)
    for topic in (rpcapi.RPC_TOPIC, rpcapi.RPC_TOPIC_ALT):
        target = oslo_messaging.Target(topic=topic, server=HOST)
        rpc.get_server(target, [endpoint], base.NovaObjectSerializer()).start()


class Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    serve_events()
    simple_server.make_server("127.0.0.1", PORT, osapi_compute.application, Server).serve_forever()


if __name__ == "__main__":
    main()
