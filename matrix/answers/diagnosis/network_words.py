"""What tests of the network alone add to any diagnosis of a slow link."""

from __future__ import annotations

from matrix.answers.diagnosis.evidence import LinkEvidence
from sonar.units import format_bytes, format_count, three_digits


def network_words(evidence: LinkEvidence) -> list[str]:
    """Say how fast the way between the sites is without their storage, what is lost there."""
    said = []
    if evidence.network_rate is not None:
        rate, count = three_digits(evidence.network_rate), format_count(evidence.network_tests)
        said.append(
            f"Tests of the network alone between both sites have a median of {rate} MB/s "
            f"(n = {count})."
        )
    said += loss_words(evidence)
    if evidence.sockets:
        sender, receiver = map(format_bytes, evidence.sockets)
        said.append(
            f"The largest windows in them were {sender} at the sender and {receiver} at the "
            "receiver, for each connection."
        )
    return said


def loss_words(evidence: LinkEvidence) -> list[str]:
    return [] if evidence.loss is None else [f"{100 * evidence.loss:.2g} % of packets are lost."]
