"""What these commands show, as lines: the overview, and one node. The words are the API's.

A line has a style for terminals that have any; what is printed for scripts is the same lines without.
"""

import datetime
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ingot.common import clock, explained
from ingot.common.json_types import Json

_BAR = 20
_MOST_NODES = 8
"""Nodes of a group that fit a screen."""

_URGENT = ("failed", "unresponsive", "overdue")
_STEP_STYLES: Mapping[str, str] = {"done": "green", "failed": "red", "interrupted": "red", "aborted": "yellow"}
_BASES: Mapping[str, str] = {
    "node": "by its own past",
    "class": "by machines with its driver",
    "all": "by the whole fleet",
}


class Line(NamedTuple):
    """A line.

    :param style: in the words of rich.
    """

    text: str
    style: str = ""


def list_overview(overview: Json, endpoint: str, now: datetime.datetime, bars: bool = False) -> Iterator[Line]:
    """Yield the lines of what the fleet needs and does.

    :param now: by the clock of the API.
    :param bars: for a screen: with bars, and as many nodes of a group as fit it.
    """
    counts, needing = overview["counts"], sum(group["count"] for group in overview["triage"])
    at = explained.read_moment(overview["at"])
    moment = clock.iso(at.replace(microsecond=0)) if at else ""
    say = f"{_count(counts['total'], 'node')}, {needing} to look at, {overview['work_count']} with work under way"
    yield Line(f"{endpoint} at {moment}: {say}", "bold")
    for group in overview["triage"]:
        yield Line("")
        yield Line(f"{group['title']} ({group['count']})", "bold red" if group["cause"] in _URGENT else "bold yellow")
        shown = group["nodes"][:_MOST_NODES] if bars else group["nodes"]
        for node in shown:
            yield from _list_need(node, now)
        if more := group["count"] - len(shown):
            yield Line(f"  and {more} more", "dim")
    if overview["work"]:
        yield Line("")
        yield Line(f"Work under way ({overview['work_count']})", "bold cyan")
        for one in overview["work"]:
            yield from _list_work(one, now, bars)
    yield Line("")
    for title, key in (("By state", "by_state"), ("By conductor", "by_conductor"), ("By class", "by_class")):
        yield Line(f"{title}: {_list_counts(counts[key])}", "dim")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'none'} {count}" for name, count in counts.items()) or "none"


def _name(node: Json) -> str:
    return str(node["name"] or node["uuid"])


def _list_need(node: Json, now: datetime.datetime) -> Iterator[Line]:
    since = explained.read_moment(node["since"])
    span = f", for {clock.spell((now - since).total_seconds())}" if since else ""
    step = f", step {node['step']}" if node["step"] else ""
    by = f", by {node['by']}" if node["by"] else ""
    yield Line(f"  {_name(node)}  {node['provision_state']}{span}{step}{by}")
    if node["reason"]:
        yield Line(f"    Why:  {' '.join(node['reason'].split())}")
    yield Line(f"    Next: {node['next']['text']}", "green")


def _list_work(one: Json, now: datetime.datetime, bars: bool) -> Iterator[Line]:
    step = f"step {one['index'] + 1} of {one['steps']}, {one['step']}" if one["step"] else "not begun"
    usual = "" if one["expected_seconds"] is None else f" (usually {clock.spell(one['expected_seconds'])})"
    began = explained.read_moment(one["started_at"])
    span = f" for {clock.spell((now - began).total_seconds())}{usual}" if began else ""
    yield Line(f"  {_name(one)}  {one['flow']}: {step}{span}{_describe_progress(one, now, bars)}")
    yield Line(f"    Waits for: {one['waits_for']}", "dim")


def _describe_progress(one: Json, now: datetime.datetime, bars: bool) -> str:
    """Return how far work is now, which is more than when it was asked for."""
    began, ends = explained.read_moment(one["run_started_at"]), explained.read_moment(one["eta"])
    if began is None or ends is None or one["progress"] is None:
        return ""
    left = max((ends - now).total_seconds(), 0.0)
    done = (now - began).total_seconds()
    part = max(one["progress"], min(done / (done + left), 1.0) if done + left > 0 else 0.0)
    bar = f"  {'█' * round(part * _BAR)}{'░' * (_BAR - round(part * _BAR))}" if bars else ""
    ending = f"about {clock.spell(left)} left" if left else "any moment now"
    return f"{bar}  {part:.0%}, {ending} {_BASES.get(one['basis'], '')}".rstrip()


def list_explanation(explanation: Json, timeline: Json, now: datetime.datetime) -> Iterator[Line]:
    """Yield the lines of why a node is where it is, and of its latest run.

    :param timeline: that of the node.
    :param now: by the clock of the API.
    """
    uuid, name = explanation["node_uuid"], explanation["node_name"]
    yield Line(f"Node {name or uuid}{f' ({uuid})' if name else ''}", "bold")
    if need := explanation["triage"]:
        yield Line(f"{need['title']}{', by ' + need['by'] if need['by'] else ''}", "bold red")
        if need["reason"]:
            yield Line(f"  Why:  {' '.join(need['reason'].split())}")
        yield Line(f"  Next: {need['next']['text']}", "green")
    for text in explained.render(explanation, now):
        yield Line(text)
    if timeline["steps"]:
        yield Line(f"Steps of the latest run, {timeline['flow']} {timeline['run']}:", "bold")
        for step in timeline["steps"]:
            yield _describe_step(step, now)


def _describe_step(step: Json, now: datetime.datetime) -> Line:
    begun = explained.read_moment(step["started_at"])
    ended = step["finished_at"] is not None
    seconds = step["duration"] if ended or begun is None else (now - begun).total_seconds()
    took = "" if seconds is None else f"  {clock.spell(seconds)}"
    usual = "" if step["usual_duration"] is None else f"  (usually {clock.spell(step['usual_duration'])})"
    again = f"  attempt {step['attempt']}" if step["attempt"] > 1 else ""
    error = f"  {' '.join(step['error'].split())}" if step["error"] else ""
    text = f"  {step['state']:<12}{step['interface']}.{step['step']}{took}{usual}{again}{error}"
    style = _STEP_STYLES.get(step["state"], "dim" if step["state"] == "planned" else "cyan")
    return Line(text, style)


def find_stale_at(overview: Json) -> datetime.datetime | None:
    """Return when an overview is different though nothing happens."""
    return explained.read_moment(overview["stale_at"])
