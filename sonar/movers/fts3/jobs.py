"""What FTS3 says of a job: how far it is, how long it took, whose fault it was.

Every field may be missing, null or of another type: what cannot be read is not known.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sonar.movers.base import MoverError, Where
from sonar.movers.messages import one_line
from sonar.movers.watch import Seen
from sonar.notation import scitags
from sonar.notation.units import LONGEST_SECONDS

DONE = "FINISHED"
CANCELLED = "CANCELED"
FINAL = {DONE, "FAILED", CANCELLED}
FINAL_FOR_JOBS = {"FAILED", CANCELLED, "FINISHEDDIRTY"}
BEGUN = {"ACTIVE", "READY"}
"""Whoever is not there, or in a state that we do not know, has not begun."""
SCOPES = {
    "SOURCE": Where.SOURCE,
    "DESTINATION": Where.DESTINATION,
    "TRANSFER": Where.TRANSFER,
    "GENERAL_FAILURE": Where.CONTROL,
    "AGENT": Where.CONTROL,
}
REASON = re.compile(rf"\s*({'|'.join(SCOPES)})\b(?:[^\[]{{0,60}}\[([0-9]{{1,4}})\])?")
# The codes of errno that a second try does not change.
PERMANENT = {"1", "2", "13", "17", "20", "21", "22", "36", "95"}
PARAMETERS = re.compile(r"\b(nostreams|buffersize):([0-9]{1,10})\b")
LOG_PORT = 8449
"""Of its web server, where its logs are."""
HOST = re.compile(r"[A-Za-z0-9.-]{1,200}")
LOG_FILE = re.compile(r"/[A-Za-z0-9._~/@%+,;=:-]{1,270}")


@dataclass(frozen=True)
class Progress:
    """How far a job with one file is."""

    state: str
    """As FTS calls it: there may be states that nobody has heard of."""
    reason: str = ""
    queue_seconds: float | None = None
    seconds: float | None = None
    """To move the bytes, by its own clock."""
    streams: int | None = None
    tcp_buffer_bytes: int | None = None
    log_url: str = ""
    scitag: int | None = None

    def note(self, seen: Seen) -> None:
        """Say what a result has a column for."""
        seen.queue_seconds = self.queue_seconds
        seen.streams_used = self.streams
        seen.tcp_buffer_used_bytes = self.tcp_buffer_bytes
        seen.log_url = self.log_url
        seen.scitag = self.scitag or seen.scitag

    @property
    def is_final(self) -> bool:
        return self.state in FINAL or self.state in FINAL_FOR_JOBS


def progress_of(job: Mapping[str, object]) -> Progress:
    """Read a job as it answers a poll with ``files``."""
    file = _only_file(job.get("files"))
    state, of_job = _text(file, "file_state"), _text(job, "job_state")
    if state not in FINAL and of_job in FINAL_FOR_JOBS:
        state = of_job
    parameters = dict(PARAMETERS.findall(_text(file, "internal_file_params")))
    return Progress(
        state=state or of_job,
        reason=_text(file, "reason") or _text(job, "reason"),
        queue_seconds=_between(_moment(job, "submit_time"), _moment(file, "start_time")),
        seconds=_seconds(file.get("tx_duration")),
        streams=_whole(parameters.get("nostreams"), 32_767),
        tcp_buffer_bytes=_whole(parameters.get("buffersize"), 2**31 - 1),
        log_url=_log_url(_text(file, "transfer_host"), _text(file, "log_file")),
        scitag=_whole(file.get("scitag"), scitags.MOST),
    )


def failure_of(progress: Progress, *secrets: str) -> MoverError:
    """Return whose fault it was that a job did not succeed, and whether it will last."""
    if progress.state == CANCELLED:
        return MoverError(Where.CONTROL, "FTS: somebody cancelled the job")
    match = REASON.match(progress.reason)
    words = one_line(progress.reason, *secrets) or "no reason is given"
    where = SCOPES[match[1]] if match else Where.TRANSFER
    permanent = bool(match and match[2] in PERMANENT)
    return MoverError(where, one_line(f"FTS: {words}"), permanent=permanent)


def _only_file(files: object) -> Mapping[str, object]:
    only = files[0] if isinstance(files, list) and len(files) == 1 else None
    return only if isinstance(only, dict) else {}


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _moment(fields: Mapping[str, object], name: str) -> datetime | None:
    """Read a time; without a zone, as FTS writes it, it is of UTC."""
    try:
        moment = datetime.fromisoformat(_text(fields, name))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _between(before: datetime | None, after: datetime | None) -> float | None:
    """Return the seconds between; two clocks of whole seconds may be one apart."""
    if before is None or after is None:
        return None
    seconds = max((after - before).total_seconds(), 0.0)
    return seconds if seconds <= LONGEST_SECONDS else None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= LONGEST_SECONDS else None


def _whole(value: object, most: int) -> int | None:
    """Read a whole number above zero, of JSON or of a text of some digits."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= most else None


def _log_url(host: str, log: str) -> str:
    if not (HOST.fullmatch(host) and LOG_FILE.fullmatch(log)):
        return ""
    return f"https://{host}:{LOG_PORT}{log}"
