"""Real XRootD servers that let nobody in but who shows a token of an issuer."""

import shlex
from pathlib import Path

from tests.needs import OWN_MOUNTS
from tests.storage.cluster import Cluster, Member
from tests.storage.issuer import Issuer
from tests.storage.xrootd import Server, give_to_server, make_room

# Over root:// who comes shows the token by the protocol ztn, over TLS, and the server that fetches
# a file shows that of its client.
CONFIG = """
if exec xrootd
xrootd.seclib libXrdSec.so
sec.protocol ztn
xrootd.tls capable all
fi
ofs.authorize 1
ofs.authlib libXrdAccSciTokens.so config={room}/scitokens.cfg
http.header2cgi Authorization authz
scitokens.trace all
"""
ISSUERS = """
[Global]
audience = {audience}, {anybody}
[Issuer test]
issuer = {issuer}
base_path = {base_path}
default_user = xrootd
"""
# Its library asks the issuer over TLS and trusts the system's authorities alone: this server has
# a file of them of its own.
ANYBODY = "https://wlcg.cern.ch/jwt/v1/any"
TO_FETCH, TO_FETCH_WITH_TOKENS = "ofs.tpc pgm", "ofs.tpc fcreds ?ztn =BEARER_TOKEN_FILE pgm"
SYSTEM_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


class Believer(Server):
    """A server that believes an issuer."""

    def believe(self, issuer: Issuer, audience: str, base_path: str = "/") -> None:
        """Let in who shows a token for this audience; paths in it begin at ``base_path``."""
        room = self.room
        config = room / "server.cfg"
        usual = config.read_text().replace(TO_FETCH, TO_FETCH_WITH_TOKENS)
        config.write_text(usual + CONFIG.format(room=room))
        text = ISSUERS.format(
            audience=audience, anybody=ANYBODY, issuer=issuer.url, base_path=base_path
        )
        (room / "scitokens.cfg").write_text(text)
        for path in (room / "cache", room / "scitokens.cfg"):
            if not path.exists():
                path.mkdir()
            give_to_server(path)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def _command(self) -> list[str]:
        command = shlex.join(super()._command())
        bundle = shlex.quote(str(self.authority.bundle))
        script = (
            f"mount --bind {bundle} {SYSTEM_BUNDLE} && "
            f"exec env XDG_CACHE_HOME={shlex.quote(str(self.room / 'cache'))} "
            f"X509_CERT_DIR={shlex.quote(str(self.authority.directory))} {command}"
        )
        return [*OWN_MOUNTS, "sh", "-c", script]


class TokenServer(Believer):
    """A storage server of its own; its issuer's paths begin at ``base_path`` of it."""

    def __init__(self, room: Path, issuer: Issuer, base_path: str = "/") -> None:
        super().__init__(room, issuer.authority)
        self.believe(issuer, self.url, base_path)


class TokenMember(Believer, Member):
    """One machine of a cluster, each of which takes tokens for the manager."""


class TokenCluster(Cluster):
    """A cluster whose manager hands the token that it is shown on, in the URL of its redirect."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(issuer.authority)
        self.issuer = issuer

    def environment(self) -> dict[str, str]:
        """Let who asks the manager over root:// show a token."""
        token = self.issuer.token("storage.read:/", ANYBODY)
        trusted = {"X509_CERT_DIR": str(self.authority.directory)}
        return super().environment() | trusted | {"BEARER_TOKEN": token}

    def member(self, role: str, meeting: int) -> Member:
        made = TokenMember(make_room(), self.authority, role, meeting)
        manager = self.members[0] if self.members else made
        made.believe(self.issuer, manager.url)
        return made
