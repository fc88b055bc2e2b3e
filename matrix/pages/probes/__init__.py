"""Tests as people order and follow them: the form, the page of a link's, the views."""
