"""How gunicorn serves Sonar: `gunicorn --config python:sonar.gunicorn_conf`.

`make run`, the image, the benchmarks and the tests all start it so; where it listens, and what
else is theirs, they say on the command line.
"""

import sys

from gunicorn.arbiter import Arbiter

from sonar.processes.web_worker import Worker

wsgi_app = "sonar.wsgi"
worker_class = Worker
workers = 2
threads = 8
control_socket_disable = True

# Nobody's word is taken for where a request came from, how, and below which path: by itself
# gunicorn believes who asks from loopback. What SONAR_PROXIES proxies say, Django reads.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}
proxy_protocol = "off"
header_map = "drop"

# docs/security.md names these; a line and its headers are read before anybody can be asked.
limit_request_line = 4094
limit_request_field_size = 8190
limit_request_fields = 100


def post_worker_init(worker: Worker) -> None:
    """End, and gunicorn with it, where the tables are not those of this code."""
    from sonar.database import tables

    if sentence := tables.problem_at_start():
        worker.log.error(sentence)
        sys.exit(Arbiter.WORKER_BOOT_ERROR)
