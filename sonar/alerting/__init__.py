"""What links are expected to do, and what Sonar calls people for where they do not."""
