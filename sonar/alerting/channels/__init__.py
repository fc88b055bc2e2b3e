"""Notification channels: one module for each, loaded on first use."""
