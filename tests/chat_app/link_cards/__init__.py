"""Cards of the pages to which messages link."""
