"""What is written to the log."""

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "utc": {
            "()": "sonar.processes.log.UtcFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
    },
    "filters": {
        "now_and_then": {"()": "sonar.processes.log.NowAndThen", "seconds": 60},
        "refused_in_one_line": {"()": "sonar.processes.log.RefusedInOneLine"},
        "broker_gone_in_one_line": {"()": "sonar.processes.log.BrokerGoneInOneLine"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "utc",
            "filters": ["refused_in_one_line", "broker_gone_in_one_line"],
        }
    },
    # Each second while Redis refuses what it writes, which is not needed.
    # Headers of storage servers that it cannot read it would quote, tokens that they repeat too.
    "loggers": {
        "kombu.transport.redis": {"filters": ["now_and_then"]},
        "sonar.processes.heartbeat_file": {"filters": ["now_and_then"]},
        "urllib3": {"level": "ERROR"},
        # A line for each step, of each PDF.
        "weasyprint": {"level": "ERROR"},
        "fontTools": {"level": "ERROR"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
