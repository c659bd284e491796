"""The CEL language as Kubernetes uses it: parse, check, cost, evaluate. Pure, and independent of devices.

    text ──parser──▶ tree ──checker──▶ types ──estimate──▶ worst-case cost
                                         │
                                         ├──evaluate──▶ value, actual cost, value of every sub-expression
                                         └──generate──▶ Python function, ten to a hundred times as fast

The set of functions is data: `library/` has one module per CEL library, and `environment` lists the libraries of each
release of Kubernetes. Callers add variables, such as a device, to an environment.
"""
