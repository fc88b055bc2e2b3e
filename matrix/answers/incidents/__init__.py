"""What Sonar calls people for: how it is found, what it is called, and how it goes on."""
