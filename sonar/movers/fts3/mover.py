"""FTS3: a service is asked for the copy, and starts it when its queue allows.

The rate leaves its queue out: it is made of the seconds that FTS says it moved the bytes for. A
job is tried once, and ends after a while even if nobody polls it. FTS is given the tokens that the
endpoints lend, and of Sonar's own only the one by which it knows Sonar.
"""

import math
import re
import time
from typing import Any

from sonar.movers.base import STOP_SECONDS, End, MoverError, Order, Receipt, Service, Stopped, Where
from sonar.movers.file_address import parsed, require_inside
from sonar.movers.fts3.poll import (
    CANCEL_SECONDS,
    DONE,
    POLLERS,
    Poller,
    Progress,
    failure_of,
    progress_of,
)
from sonar.movers.fts3.rest import Fts, Json, NotAsked, Refusal
from sonar.movers.http.exchange import bearer
from sonar.movers.http.webdav import WebDav
from sonar.movers.watch import Seen, Watch, within

UNMANAGED = re.compile("unmanaged", re.IGNORECASE)
BAD_REQUEST = 400
SERVER_ERROR = 500


class Fts3:
    """Copies between two servers by a third one, which is asked for them."""

    def __init__(self) -> None:
        self.files = WebDav()

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Ask for one copy and wait for its end, or raise MoverError."""
        service, until = service_of(order), time.monotonic() + order.limits.total
        require_inside(order.destination)
        token = service.token()
        job = job_for(order, has_token=bool(token))
        self.files.make_directories(order.destination, order)
        watch.check()
        watch.seen = Seen(scitag=order.scitag)
        poller, is_asked = POLLERS.of(service, order.ca_bundle), False
        try:
            with poller.submission(watch, until):
                is_asked = True
                number = watch.seen.remote_id = submit(poller.fts, job)
            progress = poller.wait(number, order, watch, until)
        except MoverError as error:
            if watch.seen.remote_id or (is_asked and may_have_begun(error)):
                self._give_up(poller, order, watch, error)
            raise
        return receipt(order, progress, token)

    def withdraw(self, order: Order, remote_id: str = "") -> str:
        fts, numbers = Fts(service_of(order), order.ca_bundle), [remote_id]
        if not remote_id:
            # An order to delete a file later names its destination as both ends.
            has_source = order.source.url != order.destination.url
            source = storage_of(order.source) if has_source else ""
            jobs = fts.unfinished(storage_of(order.destination), source)
            numbers = [
                number
                for number, metadata in jobs.items()
                if isinstance(metadata, dict) and metadata.get("sonar") == label_of(order)
            ]
        return next(iter([number for number in numbers if still_writes(fts, number)]), "")

    def introduce(self, service: Service, ca_bundle: str) -> None:
        Fts(service, ca_bundle).introduce()

    def _give_up(self, poller: Poller, order: Order, watch: Watch, error: MoverError) -> None:
        """Cancel a job that may go on, and say so in the error: FTS ends what runs some time later.

        Without an id it is looked for: an answer may have been lost, or not been waited for.
        """
        error.is_unsettled = True
        stopped, number = watch.stopped, watch.seen.remote_id
        seconds = STOP_SECONDS if stopped else CANCEL_SECONDS
        try:
            with within(Watch() if stopped else watch, seconds) as step:
                if number:
                    poller.cancel(number, step)
                else:
                    watch.seen.remote_id = self.withdraw(order)
        except Stopped:
            self._give_up(poller, order, watch, error)
        except MoverError:
            pass  # it is tried again when the destination file is deleted once more


def service_of(order: Order) -> Service:
    if order.service is None:
        message = "no FTS service is configured: set the service of the mesh"
        raise MoverError(Where.CONTROL, message, permanent=True)
    return order.service


def submit(fts: Fts, job: Json) -> str:
    """Ask for a job; return its id.

    Tokens that FTS neither renews nor exchanges spare it a queue of its own; a server that allows
    none is asked once more without. FTS 3.13 knows of no such wish, and leaves it aside.
    """
    try:
        return fts.submit(job)
    except Refusal as error:
        unmanaged = "unmanaged_tokens" in job["params"] and UNMANAGED.search(error.words)
        if error.status != BAD_REQUEST or not unmanaged:
            raise
    params = {name: value for name, value in job["params"].items() if name != "unmanaged_tokens"}
    return fts.submit(job | {"params": params})


def still_writes(fts: Fts, number: str) -> bool:
    """Cancel a job; say whether its file may be written all the same.

    FTS cancels no file that is in the state TOKEN_PREP or ON_HOLD: it is copied later. What it does
    not know, or has another owner, is not ours.
    """
    fts.cancel([number])
    job = fts.jobs([number]).get(number, {})
    if isinstance(job, Refusal):
        raise job
    return job is not None and progress_of(job).may_write


def may_have_begun(error: MoverError) -> bool:
    """Say whether a job may have been taken although its submission failed.

    An error of a server may be that of somebody in between.
    """
    if isinstance(error, Refusal):
        return error.status >= SERVER_ERROR
    return not isinstance(error, NotAsked)


def job_for(order: Order, *, has_token: bool) -> Json:
    """Return what is asked of FTS; raise MoverError for tokens that it would take for others."""
    tokens = tokens_for(order, has_token=has_token)
    seconds = max(math.ceil(order.limits.total), 1)
    file: dict[str, Any] = {
        "sources": [parsed(order.source, order.source.url).url],
        "destinations": [parsed(order.destination, order.destination.url).url],
        "filesize": order.bytes,
        **tokens,
    }
    params: dict[str, Any] = {
        "overwrite": order.overwrite,
        "verify_checksum": "none",  # who measures does it, and apart from the rate
        "retry": -1,  # 0 is the server's own number
        "nostreams": order.streams,
        "timeout": seconds,
        "max_time_in_queue": f"{seconds}s",  # a number alone would be hours
        "job_metadata": {"sonar": label_of(order)},
    }
    if order.scitag:
        file["scitag"] = order.scitag
    if tokens:
        params["unmanaged_tokens"] = True
    return {"files": [file], "params": params}


def tokens_for(order: Order, *, has_token: bool) -> dict[str, list[str]]:
    """Return what the two ends lend, which FTS takes of both or of neither.

    Without, FTS would show both the token that it knows us by.
    """
    lent = [bearer(end, end.lent) for end in (order.source, order.destination)]
    if all(lent):
        return {"source_tokens": [lent[0]], "destination_tokens": [lent[1]]}
    if any(lent) or has_token:
        missing = " and ".join(
            f"the {end.where}" for end in (order.source, order.destination) if not end.lent
        )
        why = "Sonar's own token" if has_token else "the token of the other endpoint"
        message = f"not submitted: FTS has no token for {missing} and would send {why} there"
        raise MoverError(Where.CONTROL, message, permanent=True)
    return {}


def label_of(order: Order) -> str:
    """Return by what a job is found again: the name of its destination file, its own alone."""
    return order.destination.url.rpartition("/")[2]


def storage_of(end: End) -> str:
    """Return a storage as FTS names it: without a port, and without brackets."""
    address = parsed(end, end.url)
    return f"{address.scheme}://{str(address.host).strip('[]')}"


def receipt(order: Order, progress: Progress, token: str) -> Receipt:
    """Return the receipt for a job that is over; raise MoverError if it did not succeed."""
    if progress.state != DONE:
        error = failure_of(progress, order.source.lent, order.destination.lent, token)
        for end in (order.source, order.destination):
            if end.where == error.where and end.lent_until and end.lent_until < time.time():
                message = (
                    f"{error}; the delegated token for this endpoint has expired in the meantime"
                )
                error = MoverError(error.where, message)
        error.is_unsettled = progress.may_write
        raise error
    if progress.seconds is None:
        message = "FTS: finished, but FTS did not report how long the transfer took"
        raise MoverError(Where.CONTROL, message)
    return Receipt(order.bytes, progress.seconds, "FTS: finished")
