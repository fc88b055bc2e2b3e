"""How much is tested at once, how often each task is done, and for how long results are kept."""

from sonar.settings.environment import envint, envnewfile

LONGEST_KEPT_DAYS = 36_500  # a time that is as long ago is still one

# How many transfers may be queued or running at once, over all workers.
SONAR_IN_FLIGHT = envint("SONAR_IN_FLIGHT", 100)
# How many bytes all tests may move within an hour; 0 for no limit.
SONAR_BYTES_PER_HOUR = envint("SONAR_BYTES_PER_HOUR", 0, minimum=0)
# So many failures in a row by one end, and its tests are spread thin (sonar.results.circuits).
SONAR_CIRCUIT_FAILURES = envint("SONAR_CIRCUIT_FAILURES", 5)
SONAR_PLAN_SECONDS = envint("SONAR_PLAN_SECONDS", 10)
SONAR_RECOVERY_SECONDS = envint("SONAR_RECOVERY_SECONDS", 30)
# Files that were left behind are deleted in a queue of their own: storage may not respond.
SONAR_CLEANUP_SECONDS = envint("SONAR_CLEANUP_SECONDS", 30)
# How long a worker that is told to stop waits for its transfers to end.
SONAR_STOP_SECONDS = envint("SONAR_STOP_SECONDS", 8)
# Then it hands back what still runs. A database that is away must not hold its end up.
LAST_WORDS_SECONDS = 3
# How soon a worker notices that a test of its was cancelled.
CANCEL_SECONDS = 3
# A queued probe whose message has not been taken for this long is sent again.
SONAR_RESEND_SECONDS = envint("SONAR_RESEND_SECONDS", 120)
# How often workers and the beat say that they live (sonar.processes.heartbeats).
SONAR_HEARTBEAT_SECONDS = envint("SONAR_HEARTBEAT_SECONDS", 10)
# What they write besides, each time they go round: the check of a container looks at its age.
SONAR_HEARTBEAT_FILE = envnewfile("SONAR_HEARTBEAT_FILE")

# Results are kept by the month: a month goes when it ended more than this many days ago.
SONAR_KEEP_DAYS = envint("SONAR_KEEP_DAYS", 400, maximum=LONGEST_KEPT_DAYS)
# Who changed what of the registry, of accounts and rights: for how long that is kept.
SONAR_HISTORY_DAYS = envint("SONAR_HISTORY_DAYS", 731, maximum=LONGEST_KEPT_DAYS)
SONAR_COMPACTION_SECONDS = envint("SONAR_COMPACTION_SECONDS", 10)
# How often the links of criteria sets are judged (matrix.tasks).
SONAR_COMMISSIONING_SECONDS = envint("SONAR_COMMISSIONING_SECONDS", 900)
# How often new results are assessed (matrix.tasks.assess).
SONAR_INCIDENTS_SECONDS = envint("SONAR_INCIDENTS_SECONDS", 60)
RETENTION_SECONDS = 3600
# Up to how many links of a size class /metrics has the rate of each; 0 for none.
SONAR_METRICS_LINKS = envint("SONAR_METRICS_LINKS", 1000, minimum=0)
