"""The one small world of these tests: two endpoints and an order between them."""

from sonar.movers.base import End, Order, Where
from sonar.movers.content import adler32

SIZE_BYTES = 2_000


def order_between(source: str, destination: str, **wishes: object) -> Order:
    """Return an order for the test file, from ``<source>/base`` to ``<destination>/base``."""
    fields: dict[str, object] = {
        "source": end(Where.SOURCE, source, "source/2000"),
        "destination": end(Where.DESTINATION, destination, "incoming/1"),
        "bytes": SIZE_BYTES,
        "adler32": adler32(SIZE_BYTES),
    }
    return Order(**(fields | wishes))  # type: ignore[arg-type]


def end(where: Where, server: str, path: str, token: str = "") -> End:
    return End(where, f"{server}/base/{path}", f"{server}/base", token, lent=token)


ORDER = order_between("http://glasgow.example", "http://ral.example")
