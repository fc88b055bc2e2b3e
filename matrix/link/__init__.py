"""One link: both of its directions, what is planned and running, and what is usual there."""
