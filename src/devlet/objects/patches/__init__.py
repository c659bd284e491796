"""The ways to change an object: JSON patch, merge patch, strategic merge patch and server-side apply.

Pure functions on documents. None changes what it is given; a result may share unchanged parts with its input.
"""
