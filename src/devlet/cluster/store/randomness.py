"""Values that cannot be guessed: UIDs, and the suffixes of generated names.

Random bytes are fetched from the system many at a time: a call for each would take longer than checking the object.
"""

import os

from devlet.objects.names import SUFFIX_ALPHABET, SUFFIX_LENGTH

_BLOCK = 4096
_SUFFIX_BYTES = 8  # enough to make all suffixes practically equally likely


class Randomness:
    def __init__(self) -> None:
        self._block = b""
        self._used = 0

    def uid(self) -> str:
        """Return a UUID of version 4, five times as fast as `uuid` does."""
        digits = self._take(16).hex()
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def suffix(self) -> str:
        """Return the suffix of a generated name."""
        number = int.from_bytes(self._take(_SUFFIX_BYTES), "big")
        letters = []
        for _ in range(SUFFIX_LENGTH):
            number, letter = divmod(number, len(SUFFIX_ALPHABET))
            letters.append(SUFFIX_ALPHABET[letter])
        return "".join(letters)

    def _take(self, count: int) -> bytes:
        if self._used + count > len(self._block):
            self._block, self._used = os.urandom(_BLOCK), 0
        taken = self._block[self._used : self._used + count]
        self._used += count
        return taken
