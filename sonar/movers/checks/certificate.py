"""The step of a check that looks at a server's certificate: who issued it, for whom, until when."""

import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.x509.oid import NameOID

from sonar.movers.checks.network import Host
from sonar.movers.http.exchange import new_trust
from sonar.movers.http.failures import detail_of
from sonar.movers.messages import one_line
from sonar.notation.check_steps import CheckStep, StepState
from sonar.notation.units import format_span

ENDS_SOON = timedelta(days=14)
MOST_NAMES = 4
RENEW = "Renew the certificate and load it on the server."
CHAIN = (
    "Add the certificate authority to SONAR_CA_BUNDLE, or make the server send its full "
    "certificate chain."
)
# By OpenSSL's codes of what it has against a certificate.
ADVICE = {
    9: "The certificate is not valid yet: compare the clocks of the server and of this machine.",
    10: RENEW,
    18: "The certificate is self-signed: give the server one from a trusted authority.",
    19: "Add the authority that issued the certificate to SONAR_CA_BUNDLE, or give the server "
    "another certificate.",
    20: CHAIN,
    21: CHAIN,
    62: "Give the server a certificate for the host of its base URL, or correct the base URL.",
    64: "Give the server a certificate for its IP address, or use its host name in the base URL.",
}
OTHERWISE = "Give the server a certificate that clients accept."


def certificate_step(host: Host, ca_bundle: str) -> CheckStep:
    """See whether a server's certificate is accepted, and for how long. Raises MoverError."""
    if host.scheme != "https":
        return CheckStep("certificate", StepState.NOT_CHECKED, _without_tls(host.scheme))
    try:
        certificate = shown(host, new_trust(ca_bundle))
    except ssl.SSLCertVerificationError as error:
        return refused(host, error)
    except OSError as error:  # ssl.SSLError is one
        seen = f"No TLS on port {host.port}: {detail_of(error)}."
        advice = "Enable TLS on this port, or correct the scheme or port of the base URL."
        return CheckStep("certificate", StepState.FAILED, seen, advice)
    return accepted(certificate, datetime.now(UTC))


def _without_tls(scheme: str) -> str:
    if scheme in {"http", "ftp", "iperf3"}:
        return f"There is no certificate, because {scheme} is not encrypted."
    return f"Not checked for {scheme}: the programs that move the files check certificates."


def shown(host: Host, context: ssl.SSLContext) -> x509.Certificate:
    """Return the certificate that a server shows; raises OSError where it is not accepted."""
    with (
        host.connected(host.first_reached) as sock,
        context.wrap_socket(sock, server_hostname=host.name) as wrapped,
    ):
        content = wrapped.getpeercert(binary_form=True) or b""
    return x509.load_der_x509_certificate(content)


def accepted(certificate: x509.Certificate, now: datetime) -> CheckStep:
    """Say until when a certificate counts that is accepted."""
    left = certificate.not_valid_after_utc - now
    if left < ENDS_SOON:
        seen = (
            f"The certificate expires on {day(certificate.not_valid_after_utc)}, in {span(left)}."
        )
        return CheckStep("certificate", StepState.WARNING, seen, RENEW)
    ends = f"the certificate expires on {day(certificate.not_valid_after_utc)}, in {span(left)}"
    return CheckStep("certificate", StepState.FINE, f"{described(certificate)}; {ends}.")


def refused(host: Host, error: ssl.SSLCertVerificationError) -> CheckStep:
    """Say what is wrong with a certificate, which is looked at without being believed."""
    advice = ADVICE.get(error.verify_code, OTHERWISE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent: what it says is told, and not believed
    try:
        certificate = shown(host, context)
    except (OSError, ValueError):
        seen = f"The certificate is not accepted: {detail_of(error)}."
        return CheckStep("certificate", StepState.FAILED, seen, advice)
    ended, now = certificate.not_valid_after_utc, datetime.now(UTC)
    if ended < now:
        seen = f"The certificate expired on {day(ended)}, {span(now - ended)} ago."
    else:
        seen = f"The certificate is not accepted: {detail_of(error)}. {described(certificate)}."
    return CheckStep("certificate", StepState.FAILED, seen, advice)


def described(certificate: x509.Certificate) -> str:
    """Say for whom it is, and by whom."""
    hosts = ", ".join(names(certificate)) or "no host"
    return f"The certificate is for {hosts}, issued by {issuer(certificate)}"


def names(certificate: x509.Certificate) -> list[str]:
    """Return the hosts and addresses that it is for, as it says them."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):  # none, or one that cannot be read
        return []
    texts = [one_line(str(each.value)) for each in extension.value]
    more = len(texts) - MOST_NAMES
    return [*texts[:MOST_NAMES], *([f"{more} more"] if more > 0 else [])]


def issuer(certificate: x509.Certificate) -> str:
    """Return the usual name of its authority, or else all of its name."""
    for kind in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):
        if attributes := certificate.issuer.get_attributes_for_oid(kind):
            return one_line(str(attributes[0].value))
    return one_line(certificate.issuer.rfc4514_string())


def day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"


def span(left: timedelta) -> str:
    """Write how long, in days where it is some: `4 days`, `5 h`."""
    return f"{left.days} days" if left.days > 1 else format_span(left)
