"""Planning, doing the steps, and planning again."""
