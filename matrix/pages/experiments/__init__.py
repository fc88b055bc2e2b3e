"""Experiments as people order and follow them: the form, the list of a link, the page of one."""
