"""First actions, the same ones for causes, diagnoses and incidents."""

LOOK = {
    "source": "Check the outbound path.",
    "destination": "Check the inbound path.",
    "both": "Check what both directions share: storage, servers, network connection.",
}
ONLY_THIS_LINK = "Only this link is affected. Check its network path."
PAIR = "Check what is specific to this link: permissions, routing, firewalls."
SONAR = "Check Sonar's own workers first. The Health page shows their state."
