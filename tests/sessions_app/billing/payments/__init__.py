"""Answers that have a price, over a real socket: asked, paid, settled (UAMP §3.3, §7.2)."""
