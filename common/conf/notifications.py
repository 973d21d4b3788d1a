"""Options of what Ingot tells other services: notifications, and the sensor data of machines."""

from oslo_config import cfg

NOTIFICATIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "notification_level",
        choices=["debug", "info", "warning", "error", "critical"],
        help="The least important notifications that are sent to other services by oslo.messaging; error: of failures "
        "only. Unset: none is sent, and nothing is done for them. They also need [oslo_messaging_notifications] "
        "driver, which is messagingv2 for RabbitMQ.",
    ),
    cfg.ListOpt(
        "versioned_notifications_topics",
        default=["ironic_versioned_notifications"],
        help="Topics of notifications: each is sent to every one of them. The queue that a consumer reads is called "
        "TOPIC.LEVEL, such as ironic_versioned_notifications.info, of the exchange ironic unless control_exchange is "
        "set.",
    ),
]

SENSOR_DATA: list[cfg.Opt] = [
    cfg.BoolOpt(
        "send_sensor_data",
        default=False,
        help="Whether conductors read the sensors of their machines, send what they read as notifications, and show "
        "it as metrics.",
    ),
    cfg.IntOpt(
        "interval",
        default=600,
        min=1,
        help="Seconds between two readings of a machine's sensors. The machines of a conductor are read one after the "
        "other in this time, not all at its beginning.",
    ),
    cfg.IntOpt("workers", default=4, min=1, help="Machines whose sensors a conductor reads at a time."),
    cfg.IntOpt(
        "wait_timeout",
        default=300,
        min=1,
        help="Seconds after which the readings of a round that have not begun are left to the next round.",
    ),
    cfg.ListOpt(
        "data_types",
        default=["ALL"],
        help="Kinds of sensors that are read and shown, such as Temperature,Fan,Voltage,Power; ALL: every one.",
    ),
    cfg.BoolOpt(
        "enable_for_undeployed_nodes",
        default=False,
        help="Whether machines are read in every state; otherwise only those of nodes that are active.",
    ),
    cfg.BoolOpt(
        "enable_for_nodes",
        default=True,
        help="Whether machines are read at all.",
    ),
]
