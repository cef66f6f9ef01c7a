"""Which texts were seen before, in a few bytes each."""

_BITS = 13
_BUCKETS = 1 << _BITS
_BYTES = 6
"""Of a hash, besides the bits that name its bucket."""
_MASK = _BUCKETS - 1
_REST = (1 << 8 * _BYTES) - 1


class SeenKeys:
    """A set of texts that only grows: 61 bits of each one's hash, in buckets of packed bytes. A
    million texts take 6 MB, where a `set` of them takes 130. Two of a million have the same
    hash with probability 2e-7."""

    def __init__(self) -> None:
        self._buckets = [b""] * _BUCKETS

    def add(self, text: str) -> bool:
        """Whether `text` was not in it; it is afterwards."""
        value, buckets = hash(text), self._buckets
        at = value & _MASK
        rest = (value >> _BITS & _REST).to_bytes(_BYTES, "little")
        bucket = buckets[at]
        if rest in bucket and _holds(bucket, rest):
            return False
        buckets[at] = bucket + rest
        return True

    def __contains__(self, text: str) -> bool:
        return self.has(hash(text))

    def has(self, value: int) -> bool:
        """Whether a text with this `hash` is in it."""
        bucket = self._buckets[value & _MASK]
        if not bucket:
            return False
        return _holds(bucket, (value >> _BITS & _REST).to_bytes(_BYTES, "little"))

    def update(self, other: "SeenKeys") -> None:
        for at, more in enumerate(other._buckets):
            if more:
                self._buckets[at] += more


def _holds(bucket: bytes, rest: bytes) -> bool:
    at = bucket.find(rest)
    while at > 0 and at % _BYTES:
        at = bucket.find(rest, at + 1)
    return at >= 0
