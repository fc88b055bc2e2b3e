"""The list of incidents, and the page of one incident."""
