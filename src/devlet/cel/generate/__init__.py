"""The back end of the compiler: a checked expression becomes Python source, and that a function.

    walk ──▶ logic, equality, access, optionals, inline, calls, literals, comprehensions ──▶ code ──▶ function

The functions give the same values and errors as `evaluate`, and do not count cost. What they cannot do in a straight
line they leave to `evaluate`, so it is slower at worst, never different.
"""

from devlet.cel.generate.function import Generated, generate, generate_filter

__all__ = ["Generated", "generate", "generate_filter"]
