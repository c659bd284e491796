"""Resource claims on this node: prepared by their drivers before a pod starts, and unprepared after its end."""
