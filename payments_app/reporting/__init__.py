"""What happened to money, for people: statements, costs of answers, sums by day."""
