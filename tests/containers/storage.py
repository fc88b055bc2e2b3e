"""Two containers with XRootD, and the registry of what is tested between them."""

from tests.containers.compose import Compose

NAMES = ("se-a", "se-b")
PORT = 1094
# Without TLS XrdHttp refuses COPY, even over http; nobody asks for this certificate.
CONFIG = f"""
all.role server
all.export /
oss.localroot /data
all.adminpath /admin
all.pidpath /admin
xrd.port {PORT}
xrd.network nodnr norpipa
xrd.protocol http:{PORT} libXrdHttp.so
xrootd.chksum max 4 adler32
http.exthandler xrdtpc libXrdHttpTPC.so
ofs.tpc pgm /usr/bin/xrdcp --server
xrd.tls /admin/host.pem /admin/host.key
xrd.tlsca certdir /etc/ssl/certs
"""
START = f"""
cd /admin && mkdir -p /data/disk
openssl req -x509 -newkey rsa:2048 -nodes -keyout host.key -out host.pem -subj /CN=storage -days 2
chmod 400 host.key
cat > server.cfg <<'END'
{CONFIG}END
exec xrootd -n storage -c /admin/server.cfg
"""
REGISTRY = f"""
size_classes:
  - {{name: small, from_bytes: 0, test_bytes: 2000000, timeout_seconds: 60}}
sites:
  - {{name: A, tier: 1, country: GB}}
  - {{name: B, tier: 2, country: GB}}
endpoints:
  - {{name: A_DATADISK, site: A, label: DATADISK, base_url: "http://se-a:{PORT}/disk"}}
  - {{name: B_DATADISK, site: B, label: DATADISK, base_url: "http://se-b:{PORT}/disk"}}
meshes:
  - {{name: both-ways, mover: http-tpc, sources: all, destinations: all, every: {{small: 10s}}}}
"""


def start(compose: Compose) -> None:
    """Start both in the network of the other containers."""
    for name in NAMES:
        compose.engine.run(
            *("run", "--detach", "--restart", "unless-stopped", "--name", name),
            *("--network", f"{compose.project}_default", "sonar-test-xrootd", "bash", "-c", START),
        )


def remove(compose: Compose) -> None:
    for name in NAMES:
        compose.engine.try_to("rm", "--force", "--volumes", name)
