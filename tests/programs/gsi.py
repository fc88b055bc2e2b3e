"""XRootD servers that ask for an X.509 proxy, and an authority of their own that makes proxies."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID, ObjectIdentifier

from tests.storage.xrootd import Server, give_to_server, make_room

PERSON = "worker"
# RFC 3820: that a certificate is a proxy, with all rights of who made it.
PROXY = x509.UnrecognizedExtension(
    ObjectIdentifier("1.3.6.1.5.5.7.1.14"), bytes.fromhex("300c300a06082b06010505071501")
)
USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
HOUR = timedelta(hours=1)
SECURITY = """
xrootd.seclib libXrdSec.so
sec.protocol gsi -certdir:{certificates} -cert:{room}/host.pem -key:{room}/host.key \
    -crl:0 -dlgpxy:0 -gmapopt:10
"""
# The server of the destination fetches as itself: it is given nobody's proxy.
FETCH = """#!/bin/sh
X509_CERT_DIR={certificates} X509_USER_PROXY={proxy} exec /usr/bin/xrdcp --server "$@"
"""


class Holder:
    """A certificate with its key, and who has signed it."""

    def __init__(self, names: tuple[str, ...], issuer: Holder | None, *, days: int = 2) -> None:
        self.names, self.issuer = names, issuer
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._days = days

    @property
    def subject(self) -> x509.Name:
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in self.names]
        return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Sonar tests"), *parts])

    @cached_property
    def certificate(self) -> x509.Certificate:
        return self._certificate(*self._extensions())

    def _extensions(self) -> list[tuple[x509.ExtensionType, bool]]:
        if self.issuer is None:
            uses = ("key_cert_sign", "crl_sign")
            return [(x509.BasicConstraints(ca=True, path_length=None), True), (use(*uses), True)]
        uses = ("digital_signature", "key_encipherment")
        if len(self.names) > 1:
            return [(PROXY, True), (use(*uses), True)]
        names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
        return [(x509.SubjectAlternativeName(names), False), (use(*uses), True)]

    def _certificate(self, *extensions: tuple[x509.ExtensionType, bool]) -> x509.Certificate:
        now, issuer = datetime.now(UTC), self.issuer or self
        until = now + timedelta(days=self._days)
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.subject)
            .issuer_name(issuer.subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, until) - HOUR)
            .not_valid_after(until)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(issuer.key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        plain = serialization.NoEncryption()
        style = serialization.PrivateFormat.TraditionalOpenSSL
        return self.key.private_bytes(serialization.Encoding.PEM, style, plain)


def use(*names: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in names for name in USES})


class GridAuthority:
    """An authority whose proxies XRootD takes: RSA, in a directory as grids have it."""

    def __init__(self) -> None:
        self.room = make_room()
        self.directory = self.room / "certificates"
        self.directory.mkdir()
        self._authority = Holder(("Test CA",), None)
        self._person = Holder((PERSON,), self._authority)
        (self.directory / "ca.pem").write_bytes(self._authority.pem)
        subprocess.run(["openssl", "rehash", str(self.directory)], check=True, capture_output=True)

    def proxy(self, name: str, *, days: int = 1) -> Path:
        """Write a new proxy of the same person; it has expired if the days are below zero."""
        proxy = Holder((PERSON, name), self._person, days=days)
        path = self.room / f"{name}.proxy"
        path.touch(mode=0o600)
        path.write_bytes(proxy.pem + proxy.key_pem + self._person.pem)
        return path

    def equip(self, room: Path) -> None:
        """Put a host certificate, and what a server fetches with, into its directory."""
        host = Holder(("localhost",), self._authority)
        own = Holder(("localhost", "1"), host)
        contents = {
            "host.pem": host.pem,
            "host.key": host.key_pem,
            "own.proxy": own.pem + own.key_pem + host.pem,
        }
        for name, content in contents.items():
            (room / name).touch(mode=0o600)
            (room / name).write_bytes(content)
            give_to_server(room / name)
        fetch = FETCH.format(certificates=self.directory, proxy=room / "own.proxy")
        (room / "fetch").write_text(fetch)
        (room / "fetch").chmod(0o755)


class GsiServer(Server):
    """A server of root:// that knows people by their proxies, and nobody else."""

    def __init__(self, authority: GridAuthority) -> None:
        super().__init__(make_room(), authority, host="localhost")  # type: ignore[arg-type]
        path = self.room / "server.cfg"
        # A grant of a copy names the other host: by its name, as its certificate does.
        text = path.read_text().replace(" nodnr ", " dnr ")
        text = text.replace("pgm /usr/bin/xrdcp --server", f"pgm {self.room}/fetch")
        path.write_text(text + SECURITY.format(certificates=authority.directory, room=self.room))

    def _command(self) -> list[str]:
        return [*super()._command(), "-I", "v4"]
