"""From where on something is said of a link: the numbers that the rules go by."""

# From so many successful tests on, the median of a link is compared with those of others.
FEWEST_TESTS = 3
# A link is slow beside others if it has at most this part of what one of its ends does elsewhere.
SLOW = 0.5
# A link became slower alone if at most this part of the others of each end did, too.
FEW_OTHERS = 0.25
# What an end always does says nothing of a link that became slower, but for most of its links did.
MOST_OTHERS = 0.5
# So many are said of a link: the fourth guess helps nobody.
MOST_DIAGNOSES = 3
# Where it is slow is less than why.
WITHOUT_CAUSE = 0.3
# What is left to say of storage where nobody knows what more streams do.
WITHOUT_STREAMS = 0.6
# So close to the nominal capacity of a site, it may be full.
FULL = 0.9
# What most courses are like counts, of so many at least.
FEWEST_COURSES = 3
# A handshake, an authorisation and the opening of a file take some four round trips: at 0.3 s,
# from one side of the earth to the other, about as much. What is below may be distance alone.
LEAST_OVERHEAD = 1.0
# Half of the time: the file is smaller than the half-rate size of its link.
LEAST_SHARE = 0.5

# Fewer failures have no pattern.
FEWEST_FAILURES = 3
# What most failures have in common, most of them have: a cause, hours, or where they happen.
MOST_FAILURES = 2 / 3
# Hours of the day are a pattern where most failures are within so many of them, beyond chance.
HOURS = 6
CHANCE = 0.01
# An end is judged by its other links from so many of their tests on, and fails there, too, if so
# many of these do.
FEWEST_ELSEWHERE = 3
OFTEN = 0.5
