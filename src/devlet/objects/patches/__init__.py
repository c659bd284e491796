"""Ways to change an object: JSON patch, merge patch, strategic merge patch and server-side apply.

Pure functions on documents. They do not modify their arguments; a result may share unchanged parts with them.
"""
