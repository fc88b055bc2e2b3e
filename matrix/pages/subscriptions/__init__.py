"""The pages where people subscribe to notifications, and operators share subscriptions."""
