"""The commands of the house: serve, demo."""
