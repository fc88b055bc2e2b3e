"""What tests of the network alone add to any diagnosis of a slow link."""

from __future__ import annotations

from matrix.answers.diagnosis.evidence import LinkEvidence
from sonar.notation.units import format_bytes, format_count, three_digits


def network_words(evidence: LinkEvidence) -> list[str]:
    """Say how fast the way between the sites is without their storage, what is lost there."""
    said = []
    if evidence.network_rate is not None:
        rate, count = three_digits(evidence.network_rate), format_count(evidence.network_tests)
        said.append(f"Network tests between both sites have a median of {rate} MB/s (n = {count}).")
    said += loss_words(evidence)
    if evidence.sockets:
        sender, receiver = map(format_bytes, evidence.sockets)
        said.append(
            f"Their largest TCP windows per connection were {sender} (sender) and {receiver} "
            "(receiver)."
        )
    return said


def loss_words(evidence: LinkEvidence) -> list[str]:
    return [] if evidence.loss is None else [f"{100 * evidence.loss:.2g} % of packets are lost."]
