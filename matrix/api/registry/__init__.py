"""The registry by REST: what each kind of row is, and the calls that are made of it."""
