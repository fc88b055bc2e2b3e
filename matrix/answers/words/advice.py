"""What to check first, in the words of all that names a cause: causes, diagnoses, incidents."""

LOOK = {
    "source": "Check the outbound path.",
    "destination": "Check the inbound path.",
    "both": "Check what both directions share: storage, servers, network connection.",
}
ONLY_THIS_LINK = "Only this link: check the path."
PAIR = "Check what is specific to this pair: permissions, routing, firewalls."
SONAR = "Check Sonar's own workers first: the page of operations says how they are."
