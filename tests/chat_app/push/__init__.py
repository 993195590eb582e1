"""Web Push: who is notified of what, and how it is encrypted and sent."""
