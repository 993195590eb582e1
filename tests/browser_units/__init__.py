"""Modules of static/ that know no DOM, under node's own runner; and what is vendored there."""
