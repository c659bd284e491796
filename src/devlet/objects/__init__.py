"""Kubernetes objects and device values: documents, typed views, rules. Pure: no I/O, no clock, no logging.

kinds, kind_rules   which kinds there are, and the rules of each
types               typed views of objects, for reading
values              quantities, versions, times
schema, protobuf    the messages of the API, in JSON and in protobuf
defaults            what the server fills in
validation          what the server refuses
patches             how a patch changes an object
selectors           labels, fields, nodes
pods, claims        what follows from a pod's spec and from claims
views               what a node shows of itself
"""
