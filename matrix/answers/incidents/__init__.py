"""What Sonar calls people for: what speaks for it, what it is called, and what is expected."""
