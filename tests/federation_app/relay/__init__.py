"""The relay between members of this server's hub: bytes, bounds, circles, bad members."""
