"""Pages of targets: the list, and the form with the links that a target matches."""
