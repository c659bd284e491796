"""The driver's end of the plugin sockets, for people who write drivers in Python."""
