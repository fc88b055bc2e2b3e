"""What a refusal, or an error of urllib3, ssl or the system, means for a transfer."""

import http.client
import ssl
from collections.abc import Iterator

from urllib3.exceptions import NameResolutionError

from sonar.movers.base import End, MoverError
from sonar.movers.messages import one_line

# 4xx that another attempt may well get past: timeout, locked, too early, too many requests.
PASSING_REFUSALS = {408, 423, 425, 429}

REASONS: tuple[tuple[type[BaseException], str, bool], ...] = (
    (ssl.SSLCertVerificationError, "the server's certificate is not accepted: {detail}", True),
    (NameResolutionError, "the host name is unknown", False),
    (ConnectionRefusedError, "connection refused (no server listens on this port)", False),
    (ssl.SSLError, "TLS failed: {detail}", False),
    (UnicodeError, "the URL or a header contains characters that cannot be sent", True),
)


def lasts(status: int) -> bool:
    """Say whether another attempt would be refused with this status again."""
    return (400 <= status < 500 and status not in PASSING_REFUSALS) or status == 501


def refused(end: End, place: str, status: int, text: str) -> MoverError:
    """Return the error for a status that is not what was hoped for."""
    permanent = lasts(status)
    phrase = http.client.responses.get(status, "")
    detail = f": {text}" if text else ""
    message = one_line(f"{place}: {status} {phrase}{detail}", end.token, end.lent)
    error = MoverError(end.where, message, permanent=permanent)
    error.status = status
    return error


def foreign_failure(
    error: BaseException, end: End, place: str, overdue: MoverError, *, elsewhere: bool = False
) -> MoverError:
    """Return what an error of urllib3, ssl or the system means; ``overdue`` if time ran out.

    ``elsewhere`` says that it happened with another server, whose name is in some details.
    """
    causes = list(chain_of(error))
    for kind, sentence, permanent in REASONS:
        for cause in causes:
            if isinstance(cause, kind):
                why = sentence.format(
                    detail="(details withheld)" if elsewhere else detail_of(cause)
                )
                message = one_line(f"{place}: {why}", end.token)
                return MoverError(end.where, message, permanent=permanent)
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return overdue
    os_error = next((cause for cause in causes if isinstance(cause, OSError)), None)
    why = detail_of(os_error) if os_error else "the server ended its response too early"
    return MoverError(end.where, one_line(f"{place}: {why}", end.token))


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from; urllib3 hides causes in ``args``, too."""
    queue, seen = [error], set[int]()
    while queue:
        error = queue.pop(0)
        if id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        inner = [error.__cause__, *error.args]  # not __context__: that may be another request's
        queue += [cause for cause in inner if isinstance(cause, BaseException)]


def detail_of(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(error.verify_message)
    if isinstance(error, ssl.SSLError):
        return str(error.reason or "the other side closed the connection").replace("_", " ").lower()
    return (getattr(error, "strerror", None) or "the connection was lost").lower()
