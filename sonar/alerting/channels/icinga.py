"""Icinga 2: one service gets a passive result each minute, which lists all open incidents.

While an incident of the whole grid is open, results are doubtful and the state is at most WARNING.

The service must be configured in Icinga. The result expires after some minutes, so that Icinga
reports it as late if Sonar stops.
"""

import json
from collections.abc import Sequence
from datetime import datetime

from sonar.alerting.channels.base import Matter, Target
from sonar.alerting.channels.web import basic, post

TTL_SECONDS = 300
OK, WARNING, CRITICAL = 0, 1, 2
MOST_LISTED = 20


class Icinga:
    """Sends check results to the API of Icinga 2, which listens at port 5665."""

    def tell(self, matters: Sequence[Matter], target: Target, now: datetime) -> str:
        values = target.settings
        url = f"{values['url'].rstrip('/').removesuffix('/v1')}/v1/actions/process-check-result"
        headers = {"Accept": "application/json"} | basic(values["user"], values["password"])
        open_now = [matter for matter in matters if matter.closed_at is None]
        body = json.dumps(result(open_now, target, now)).encode()
        reply = post(url, body, headers, values["password"])
        return f"{reply.words.partition(':')[0]}, {output(open_now).splitlines()[0]}"


def result(matters: Sequence[Matter], target: Target, now: datetime) -> dict[str, object]:
    is_bad = any(each.severity == "critical" for each in matters) and not is_doubtful(matters)
    return {
        "type": "Service",
        "service": target.settings["service"],
        "exit_status": (CRITICAL if is_bad else WARNING) if matters else OK,
        "plugin_output": output(matters),
        "performance_data": [f"incidents={len(matters)}"],
        "check_source": target.home,
        "execution_start": now.timestamp(),
        "execution_end": now.timestamp(),
        "ttl": TTL_SECONDS,
    }


def is_doubtful(matters: Sequence[Matter]) -> bool:
    return any(each.scope == "grid" for each in matters)


def output(matters: Sequence[Matter]) -> str:
    """Return the number of open incidents, and a line for each in the order of `Matter.lines`."""
    if not matters:
        return "No incident is open"
    count = f"{len(matters)} incident{'s are' if len(matters) > 1 else ' is'} open"
    if is_doubtful(matters):
        count += ", results are doubtful"
    return "\n".join([count, *(" ".join(each.lines) for each in matters[:MOST_LISTED])])
