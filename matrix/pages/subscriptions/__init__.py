"""The pages on which people subscribe to incidents, and operators keep lists."""
