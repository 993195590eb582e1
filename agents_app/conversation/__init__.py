"""What a model is shown: history as its messages, and the orders that agents give to each other."""
