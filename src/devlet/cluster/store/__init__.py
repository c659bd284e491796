"""The embedded cluster: objects in one SQLite file, durable before they are acknowledged, watched from memory."""
