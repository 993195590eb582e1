"""The Realtime provider against a stand-in with the vendor's wire format, on a real socket."""
