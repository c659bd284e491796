"""The CEL language as Kubernetes speaks it: parse, check, cost, evaluate. Pure, and knows no devices.

    text ──parser──▶ tree ──checker──▶ types ──estimate──▶ worst-case cost
                                         │
                                         ├──evaluate──▶ value, actual cost, value of every sub-expression
                                         └──generate──▶ Python function, ten to a hundred times as fast

Which functions exist is data: `library/` has one module per CEL library, `environment` says which of them a release of
Kubernetes has. Whoever wants variables (a device, say) adds them to an environment.
"""
