"""For each alert, series of which Prometheus is to make it fire, in the notation of ``promtool test rules``."""

from collections.abc import Mapping
from typing import NamedTuple

API, ONE, TWO = (
    'job="ingot-api",instance="%s"',
    'job="ingot-conductor",instance="c1"',
    'job="ingot-conductor",instance="c2"',
)
_API = API % "a1"


class Case(NamedTuple):
    """What makes an alert fire.

    :param series: values by series, one a minute; ``0+2x60`` is 0, 2, 4 ... 120.
    :param minutes: after which it fires.
    :param fires: how often it does then.
    """

    series: Mapping[str, str]
    minutes: int
    fires: int = 1


def _buckets(name: str, labels: str, fast: str, slow: str) -> dict[str, str]:
    """Return a histogram of which ``fast`` took at most a moment, and all others are in the last bucket."""
    bounds = ("0.005", "0.05", "0.25", "1.0", "5.0", "15.0", "60.0")
    return {
        **{f'{name}_bucket{{{labels},le="{bound}"}}': fast for bound in bounds},
        f'{name}_bucket{{{labels},le="+Inf"}}': slow,
    }


CASES: Mapping[str, Case] = {
    "IngotProcessDown": Case({f"up{{{ONE}}}": "0x60", f"up{{{TWO}}}": "1x60"}, 3),
    "IngotProcessRestarts": Case({f"process_start_time_seconds{{{ONE}}}": "100x10 200x5 300x5 400x20"}, 25),
    "IngotNotReady": Case({f'ingot_ready{{{ONE},check="conductor"}}': "0x60"}, 6),
    "IngotFewFilesLeft": Case({f"process_open_fds{{{_API}}}": "900x60", f"process_max_fds{{{_API}}}": "1000x60"}, 6),
    "IngotConductorMissing": Case(
        {
            f'ingot_conductor_online{{{_API},conductor="one"}}': "0x60",
            f'ingot_conductor_online{{{API % "a2"},conductor="one"}}': "0x60",
            f'ingot_conductor_online{{{_API},conductor="two"}}': "1x60",
        },
        2,
    ),
    "IngotHeartbeatLate": Case({f"ingot_conductor_heartbeat_timestamp_seconds{{{ONE}}}": "0x60"}, 3),
    "IngotConductorsDisagree": Case(
        {f"ingot_conductor_ring_members{{{ONE}}}": "2x60", f"ingot_conductor_ring_members{{{TWO}}}": "1x60"}, 11
    ),
    "IngotWorkersBusy": Case(
        {
            f'ingot_conductor_workers{{{ONE},pool="usual",state="busy"}}': "100x60",
            f'ingot_conductor_workers{{{ONE},pool="usual",state="most"}}': "100x60",
            f'ingot_conductor_workers{{{ONE},pool="slow",state="busy"}}': "0x60",
            f'ingot_conductor_workers{{{ONE},pool="slow",state="most"}}': "25x60",
        },
        11,
    ),
    "IngotQueuesSlow": Case(_buckets("ingot_conductor_queue_duration_seconds", ONE, "0+1x60", "0+5x60"), 15),
    "IngotLocksLost": Case({f'ingot_conductor_locks_total{{{ONE},outcome="lost"}}': "0x10 1x50"}, 15),
    "IngotSweepStale": Case(
        {f'ingot_conductor_timer_last_success_timestamp_seconds{{{ONE},timer="sweep"}}': "0x60"}, 4
    ),
    "IngotTimersFail": Case({f'ingot_conductor_timer_failures_total{{{ONE},timer="prune"}}': "0+1x60"}, 10),
    "IngotApiErrors": Case(
        {
            f'ingot_api_requests_total{{{_API},status="2xx"}}': "0+100x60",
            f'ingot_api_requests_total{{{_API},status="5xx"}}': "0+10x60",
        },
        10,
    ),
    "IngotApiSlow": Case(
        _buckets("ingot_api_request_duration_seconds", f'{_API},method="GET"', "0+1x60", "0+5x60"), 15
    ),
    "IngotApiThreadsBusy": Case(
        {
            f'ingot_api_threads{{{_API},state="busy"}}': "24x60",  # three quarters, which is all for changes
            f'ingot_api_threads{{{_API},state="most"}}': "32x60",
            f"ingot_api_requests_waiting{{{_API}}}": "9x60",
            f'ingot_api_threads{{{API % "a2"},state="busy"}}': "32x60",
            f'ingot_api_threads{{{API % "a2"},state="most"}}': "32x60",
            f"ingot_api_requests_waiting{{{API % 'a2'}}}": "0x60",
        },
        6,
        2,
    ),
    "IngotRpcUnanswered": Case({f'ingot_rpc_calls_total{{{_API},outcome="unanswered"}}': "0+1x60"}, 15),
    "IngotWakeupsLost": Case({f'ingot_wakeups_total{{{_API},outcome="lost"}}': "0+2x60"}, 15),
    "IngotNotificationsLost": Case({f'ingot_notifications_total{{{_API},outcome="lost"}}': "0+2x60"}, 15),
    "IngotAuditEventsLost": Case({f'ingot_audit_events_total{{{_API},outcome="lost"}}': "0+2x60"}, 15),
    "IngotDatabaseUnavailable": Case({f'ingot_db_errors_total{{{_API},kind="unavailable"}}': "0+1x60"}, 6),
    "IngotDatabaseSlow": Case(_buckets("ingot_db_use_duration_seconds", _API, "0+1x60", "0+5x60"), 15),
    "IngotDatabaseDeadlocks": Case({f'ingot_db_errors_total{{{_API},kind="deadlock"}}': "0+60x60"}, 30),
    "IngotDatabasePoolFull": Case(
        {
            f'ingot_db_connections{{{_API},state="busy"}}': "125x60",
            f'ingot_db_connections{{{_API},state="most"}}': "130x60",
        },
        6,
    ),
    "IngotNodeCountStale": Case({f"ingot_nodes_read_timestamp_seconds{{{_API}}}": "0x60"}, 7),
    "IngotBmcUnresponsive": Case({f"ingot_bmc_circuit_breakers_open{{{ONE}}}": "1x60"}, 16),
    "IngotManyBmcsUnresponsive": Case(
        {
            f"ingot_bmc_circuit_breakers_open{{{ONE}}}": "30x60",
            f"ingot_conductor_nodes_owned{{{ONE}}}": "100x60",
            f"ingot_bmc_circuit_breakers_open{{{TWO}}}": "10x60",
            f"ingot_conductor_nodes_owned{{{TWO}}}": "100x60",
        },
        6,
    ),
    "IngotBmcsRefuse": Case(
        {
            f'ingot_bmc_calls_total{{{ONE},driver="ipmi",outcome="answered"}}': "0+80x90",
            f'ingot_bmc_calls_total{{{ONE},driver="ipmi",outcome="refused"}}': "0+20x90",
            f'ingot_bmc_calls_total{{{ONE},driver="redfish",outcome="answered"}}': "0+80x90",
        },
        40,
    ),
    "IngotNodesOverdue": Case({f'ingot_nodes_overdue{{{_API},provision_state="deploying"}}': "2x60"}, 2),
    "IngotDeploymentsFail": Case(
        {
            f'ingot_flows_total{{{ONE},flow="deploy",outcome="done"}}': "0+1x60",
            f'ingot_flows_total{{{TWO},flow="deploy",outcome="failed"}}': "0+1x60",
        },
        30,
    ),
    "IngotCleaningsFail": Case(
        {f'ingot_nodes{{{_API},provision_state="clean failed",maintenance="true"}}': "1x90"}, 61
    ),
    "IngotNodesFaulty": Case({f'ingot_nodes_faulty{{{_API},fault="power failure"}}': "3x60"}, 31),
    "IngotNoNodeAvailable": Case({f'ingot_nodes{{{_API},provision_state="active",maintenance="false"}}': "9x60"}, 31),
}

CALM = Case(
    {
        **{f"up{{{one}}}": "1x90" for one in (_API, ONE, TWO)},
        **{f"process_start_time_seconds{{{one}}}": "100x90" for one in (_API, ONE, TWO)},
        **{f"process_open_fds{{{one}}}": "100x90" for one in (_API, ONE, TWO)},
        **{f"process_max_fds{{{one}}}": "1000x90" for one in (_API, ONE, TWO)},
        f'ingot_ready{{{ONE},check="conductor"}}': "1x90",
        f'ingot_conductor_online{{{_API},conductor="one"}}': "1x90",
        **{f"ingot_conductor_heartbeat_timestamp_seconds{{{one}}}": "0+60x90" for one in (ONE, TWO)},
        **{f"ingot_conductor_ring_members{{{one}}}": "2x90" for one in (ONE, TWO)},
        **{f'ingot_conductor_workers{{{ONE},pool="{pool}",state="busy"}}': "10x90" for pool in ("usual", "slow")},
        **{f'ingot_conductor_workers{{{ONE},pool="{pool}",state="most"}}': "100x90" for pool in ("usual", "slow")},
        f'ingot_conductor_locks_total{{{ONE},outcome="lost"}}': "0x90",
        f'ingot_conductor_timer_last_success_timestamp_seconds{{{ONE},timer="sweep"}}': "0+60x90",
        f'ingot_conductor_timer_failures_total{{{ONE},timer="prune"}}': "0x90",
        f'ingot_api_requests_total{{{_API},status="2xx"}}': "0+1000x90",
        f'ingot_api_requests_total{{{_API},status="5xx"}}': "0+1x90",
        **_buckets("ingot_api_request_duration_seconds", f'{_API},method="GET"', "0+100x90", "0+101x90"),
        **_buckets("ingot_conductor_queue_duration_seconds", ONE, "0+100x90", "0+101x90"),
        **_buckets("ingot_db_use_duration_seconds", _API, "0+100x90", "0+101x90"),
        f'ingot_rpc_calls_total{{{_API},outcome="unanswered"}}': "0x90",
        f'ingot_wakeups_total{{{_API},outcome="lost"}}': "0x90",
        f'ingot_db_errors_total{{{_API},kind="unavailable"}}': "0x85 1x4",  # a moment, four minutes ago
        f'ingot_db_errors_total{{{_API},kind="deadlock"}}': "0+1x90",
        f'ingot_db_connections{{{_API},state="busy"}}': "5x90",
        f'ingot_db_connections{{{_API},state="most"}}': "130x90",
        f"ingot_nodes_read_timestamp_seconds{{{_API}}}": "0+60x90",
        f"ingot_bmc_circuit_breakers_open{{{ONE}}}": "0x90",
        f"ingot_conductor_nodes_owned{{{ONE}}}": "100x90",
        f'ingot_bmc_calls_total{{{ONE},driver="ipmi",outcome="answered"}}': "0+80x90",
        f'ingot_bmc_calls_total{{{ONE},driver="ipmi",outcome="refused"}}': "0+1x90",
        f'ingot_nodes_overdue{{{_API},provision_state="deploying"}}': "0x90",
        f'ingot_nodes{{{_API},provision_state="available",maintenance="false"}}': "5x90",
        f'ingot_flows_total{{{ONE},flow="deploy",outcome="done"}}': "0+1x90",
        f'ingot_flows_total{{{ONE},flow="deploy",outcome="failed"}}': "0x90",
    },
    90,
    0,
)
"""A site of which nothing is to be said."""
