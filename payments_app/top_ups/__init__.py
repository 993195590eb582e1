"""Money that people put into their accounts, through providers an operator chose."""
