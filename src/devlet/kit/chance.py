"""Random numbers for delays, from a generator of devlet's own.

A node may run in a thread of a user's test process. If it drew from Python's global generator, a test that seeds that
generator would no longer be reproducible, and Hypothesis would complain about strategies that use it.
"""

from random import Random

__all__ = ["random"]

random = Random()
