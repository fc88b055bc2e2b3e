"""The network alone, by iperf3: the worker sends to a server from memory, or fetches from it.

A server serves one client at a time and refuses others: its turn is waited for, for a while.
iperf3 says everything at its end, in JSON, and 3.12 ends with 0 whatever happened.
"""

import math
import re
import time
from collections.abc import Iterator
from itertools import accumulate, islice
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from sonar.movers.base import End, MoverError, Order, Receipt, Where
from sonar.movers.failures import judge
from sonar.movers.file_address import parsed
from sonar.movers.messages import one_line
from sonar.movers.network import PathFigures, SeenOfNetwork
from sonar.movers.programs import tool
from sonar.movers.programs.tool import Command, Ended
from sonar.movers.watch import MAX_SAMPLES, Sample, Watch
from sonar.notation.addresses import PORTS, ip_version
from sonar.notation.units import MOST_BYTES

SCHEME = "iperf3"
BUSY = re.compile(r"server is busy", re.IGNORECASE)
# A server listens anew after each test: who has come between gets this.
RESET = re.compile(r"Connection reset by peer", re.IGNORECASE)
TURN_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 1.0
# Streams times intervals that it may speak of, at some 450 characters each; and all it may say.
MOST_INTERVALS = 50_000
LONGEST_INTERVAL_SECONDS = 60
MOST_CHARACTERS = 64 * 1024 * 1024
# A report begins its line; what is inside it is indented.
OBJECT = re.compile(r"(?:^|\A\s+)(?=\{)", re.MULTILINE)
MOST_OBJECTS = 20
# The receiver counts what it has read when the sender is done: the rest is in buffers.
TOO_FEW = "iperf3: the sender finished before anything was received: the test is too small"

Count = Annotated[int, Field(ge=0, le=2**53)]
Segment = Annotated[int, Field(ge=0, le=2**31 - 1)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Connected(BaseModel):
    remote_host: str = ""


class Start(BaseModel):
    connected: list[Connected] = []
    tcp_mss_default: Segment = 0


class Summed(BaseModel):
    """All streams together, over an interval or the whole test."""

    end: Seconds = 0.0
    seconds: Seconds = 0.0
    bytes: Count = 0
    retransmits: Count | None = None
    omitted: bool = False


class Interval(BaseModel):
    sum: Summed = Summed()


class Sender(BaseModel):
    """One stream as its sender saw it: round trips in microseconds; 0 is what nobody told."""

    min_rtt: Count = 0
    mean_rtt: Count = 0
    max_rtt: Count = 0
    max_snd_cwnd: Count = 0
    max_snd_wnd: Count = 0


class Stream(BaseModel):
    sender: Sender = Sender()


class Finish(BaseModel):
    streams: list[Stream] = []
    sum_sent: Summed = Summed()
    sum_received: Summed = Summed()
    sender_tcp_congestion: str = ""


class Report(BaseModel):
    """What iperf3 says with --json, as far as it is used; ``error`` is empty for a good end."""

    start: Start = Start()
    intervals: list[Interval] = []
    end: Finish = Finish()
    error: str = ""


class Iperf3:
    """One client towards the server at the other end."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Measure the way between both ends, or raise MoverError."""
        until = time.monotonic() + min(TURN_SECONDS, order.limits.total)
        while True:
            ended, report = run(order, watch)
            if not is_taken(report) or time.monotonic() >= until:
                break
            watch.pause(LOOK_AGAIN_SECONDS)
        watch.seen = seen_of(report)
        if report.error or ended.code or not report.model_fields_set:
            raise failed(order, ended, report)
        received = report.end.sum_received
        seconds = received.seconds or received.end
        if not received.bytes or not seconds:
            raise MoverError(Where.TRANSFER, TOO_FEW)
        return Receipt(received.bytes, seconds, "iperf3 succeeded")


def is_taken(report: Report) -> bool:
    """Return whether the server serves another client, or resets who comes as it ends that."""
    ends = RESET.search(report.error) and not report.start.connected
    return bool(BUSY.search(report.error) or ends)


def run(order: Order, watch: Watch) -> tuple[Ended, Report]:
    """Run the client once; its report is blank where it wrote none."""
    lines = Kept()
    ended = tool.move(Command(arguments(order)), order, watch, lines.keep, moved_by(order))
    return ended, lines.report()


class Kept:
    """What the client writes: its report, once or twice, and whatever is around it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._characters = 0

    def keep(self, line: str) -> None:
        """Keep a line; raise MoverError for more than any test has to say."""
        self._characters += len(line)
        if self._characters > MOST_CHARACTERS:
            raise MoverError(Where.CONTROL, "iperf3 wrote too much output and was stopped")
        self._lines.append(line)

    def report(self) -> Report:
        """Read all of it; raise MoverError for what is no report."""
        return read("\n".join(self._lines))


def read(text: str) -> Report:
    """Read the first report in what the client wrote; blank if there is none.

    Without a report is, for example, a complaint about the parameters. Warnings may come before
    it, and 3.16 and 3.17 write it twice. Raises MoverError for JSON that is not a report.
    """
    refusal = ""
    for begin in islice(OBJECT.finditer(text), MOST_OBJECTS):
        try:
            value, end = JSONDecoder().raw_decode(text, begin.end())
        except JSONDecodeError as error:
            refusal = refusal or f"{error.msg} (line {error.lineno})"
            continue
        except (ValueError, RecursionError):
            refusal = refusal or "nested too deeply, or a number is too long"
            continue
        if not value.keys() & Report.model_fields.keys():
            continue
        try:
            return Report.model_validate_json(text[begin.end() : end])
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            refusal = ": ".join(filter(None, (place, first["msg"])))
            break
    if refusal:
        why = one_line(f"iperf3 wrote a report that cannot be read: {refusal}")
        raise MoverError(Where.CONTROL, why)
    return Report()


def arguments(order: Order) -> tuple[str, ...]:
    address = parsed(server(order), server(order).base_url)
    limits, buffer = order.limits, order.tcp_buffer_bytes
    seconds = math.ceil(order.streams * limits.total / MOST_INTERVALS)
    return (
        *("iperf3", "--json", f"--client={str(address.host).strip('[]')}"),
        *("--port", str(address.port or PORTS[SCHEME]), "--bytes", str(order.bytes)),
        *("--parallel", str(order.streams), "--connect-timeout", milliseconds(limits.connect)),
        *("--interval", str(min(max(seconds, 1), LONGEST_INTERVAL_SECONDS))),
        *(("--window", str(buffer)) if buffer else ()),
        *(("--reverse",) if order.mode == "pull" else ()),
    )


def milliseconds(seconds: float) -> str:
    return str(max(round(1000 * seconds), 1))


def server(order: Order) -> End:
    """Return the end where the server is: the worker is the other one, which does the work."""
    return order.source if order.mode == "pull" else order.destination


def moved_by(order: Order) -> tool.Meter:
    """Return what counts the bytes that a running client has sent, or fetched."""
    name = b"rchar:" if order.mode == "pull" else b"wchar:"

    def count(process: int) -> int | None:
        try:
            rows = Path(f"/proc/{process}/io").read_bytes().splitlines()
        except OSError:  # it has ended, or this kernel does not tell
            return None
        return next((min(int(row[6:]), order.bytes) for row in rows if row.startswith(name)), None)

    return count


def seen_of(report: Report) -> SeenOfNetwork:
    """Return what a report tells of a test, however it ended."""
    samples = list(samples_of(report))
    hosts = [each.remote_host for each in report.start.connected]
    moved = report.end.sum_received.bytes or (samples[-1].bytes if samples else None)
    return SeenOfNetwork(
        samples=samples[:MAX_SAMPLES],
        moved_bytes=moved and min(moved, MOST_BYTES),
        streams_used=len(hosts) or None,
        ip_version=ip_version(hosts[0]) if hosts else None,
        path=figures_of(report),
    )


def samples_of(report: Report) -> Iterator[Sample]:
    """Give the bytes that had moved at the end of each interval."""
    sums = [interval.sum for interval in report.intervals if not interval.sum.omitted]
    for each, moved in zip(sums, accumulate(each.bytes for each in sums), strict=True):
        yield Sample(each.end, min(moved, MOST_BYTES))


def figures_of(report: Report) -> PathFigures:
    finish = report.end
    senders = [stream.sender for stream in finish.streams]
    answers = [sender for sender in senders if sender.mean_rtt]
    mean = sum(sender.mean_rtt for sender in answers) / len(answers) if answers else 0
    sent = finish.sum_sent
    return PathFigures(
        rtt_min_ms=_ms(min((sender.min_rtt for sender in answers), default=0)),
        rtt_mean_ms=_ms(mean),
        rtt_max_ms=_ms(max((sender.max_rtt for sender in answers), default=0)),
        retransmits=sent.retransmits if sent.bytes else None,
        sent_bytes=sent.bytes or None,
        max_cwnd_bytes=max((sender.max_snd_cwnd for sender in senders), default=0) or None,
        max_receive_window_bytes=max((sender.max_snd_wnd for sender in senders), default=0) or None,
        mss_bytes=report.start.tcp_mss_default or None,
        congestion_control=one_line(finish.sender_tcp_congestion)[:20],
    )


def _ms(microseconds: float) -> float | None:
    return microseconds / 1000 or None


def failed(order: Order, ended: Ended, report: Report) -> MoverError:
    """Return what its words say: whose fault it is, and whether it will last."""
    text = report.error or ended.text.partition("\n")[0]
    return judge(text, order, is_verdict=True).error(f"iperf3: {ended.complaint(text)}")
