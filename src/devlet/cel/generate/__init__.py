"""The back end of the compiler: turn a checked expression into Python source, and the source into a function.

    walk ──▶ logic, equality, access, optionals, inline, calls, literals, comprehensions ──▶ code ──▶ function

The functions return the same values and errors as `evaluate`, but do not count cost. Cases that they do not cover are
left to `evaluate`: the result may take longer, but never differs.
"""

from devlet.cel.generate.function import Generated, generate, generate_filter

__all__ = ["Generated", "generate", "generate_filter"]
