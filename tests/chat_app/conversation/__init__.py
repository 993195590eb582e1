"""What members do with messages that were sent."""
