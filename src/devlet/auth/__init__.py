"""Identity and permission: who is asking, and what they may do.

Authentication turns a verified certificate, a bearer token or the owner of a socket into a `User`. Authorization and
admission decide what that user may do, from rules and from the objects that a protocol (`stored_objects.Objects`) hands
in. Decisions are pure: values in, values out; a refusal is a `Decision` or an error of `devlet.errors` in Kubernetes'
words. Only `certificates`, `credentials` and `kubeconfigs` touch the disk. Nothing here knows about HTTP or the store.
"""
