"""One module per library of functions; each has a `LIBRARY` (or several versions of it). None knows the others' order.

Which of them exist in which release of Kubernetes is said in `devlet.cel.environment`, not here.
"""
