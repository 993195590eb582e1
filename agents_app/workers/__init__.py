"""Work that might take too long or too much memory, in killable processes, in fair turns."""
