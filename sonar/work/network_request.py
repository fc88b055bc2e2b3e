"""What a probe of the network orders from a mover: no files, and no credentials."""

from django.conf import settings

from sonar.credentials.rules import PASSIVE_AND_ACTIVE
from sonar.models import Endpoint, Probe
from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.file_address import require_printable


def order_for(probe: Probe) -> Order:
    """Say to the mover what this probe wants.

    Raises MoverError unless this process stands for the end that does the work, and for a base URL
    that was written past the forms.
    """
    require_here(probe)
    return Order(
        source=_end(Where.SOURCE, probe.source),
        destination=_end(Where.DESTINATION, probe.destination),
        bytes=probe.bytes,
        streams=probe.streams,
        tcp_buffer_bytes=probe.tcp_buffer_bytes,
        mode=probe.mode,
        limits=Limits(total=probe.size_class.timeout_seconds),
    )


def require_here(probe: Probe) -> None:
    end: Endpoint = getattr(probe, PASSIVE_AND_ACTIVE[probe.mode][1])
    here = settings.SONAR_NETWORK_ENDPOINT
    if end.name != here:
        stands = f"this one stands for {here}" if here else "here that setting is empty"
        why = (
            f"with mode {probe.mode} a worker at {end.name} does the work, one whose setting "
            f"SONAR_NETWORK_ENDPOINT says so: {stands}"
        )
        raise MoverError(Where.CONTROL, why, permanent=True)


def _end(where: Where, endpoint: Endpoint) -> End:
    end = End(where, endpoint.base_url, endpoint.base_url)
    require_printable(end)
    return end
