"""Which sets may be alike: MinHash (Broder 1997) in bands (Leskovec, Rajaraman, Ullman, "Mining of
massive datasets", 3.4). It only proposes; whoever asks compares the sets themselves."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

BANDS, ROWS = 16, 8
"""Two sets that share 80% of their pieces meet in a band with a chance of 95%, of 90% always."""
_SEED = 1


class Proposals:
    """Sets by number, and those that may be alike to another one."""

    def __init__(self) -> None:
        draw = np.random.default_rng(_SEED)
        numbers = draw.integers(0, 2**64, (2, BANDS * ROWS), dtype=np.uint64)
        # Multiply and shift (Dietzfelbinger 1997): odd factors, the upper half counts.
        self._factors, self._shifts = numbers[0] | np.uint64(1), numbers[1]
        self._in_band: defaultdict[tuple[int, bytes], list[int]] = defaultdict(list)

    def add(self, number: int, pieces: Iterable[str]) -> None:
        for band in self._bands(pieces):
            self._in_band[band].append(number)

    def of(self, pieces: Iterable[str]) -> list[int]:
        """In rising order."""
        found: set[int] = set()
        for band in self._bands(pieces):
            found.update(self._in_band.get(band, ()))
        return sorted(found)

    def _bands(self, pieces: Iterable[str]) -> Iterator[tuple[int, bytes]]:
        smallest = self._smallest(pieces)
        for band in range(BANDS):
            yield band, smallest[band * ROWS : (band + 1) * ROWS].tobytes()

    def _smallest(self, pieces: Iterable[str]) -> NDArray[np.uint64]:
        hashes = np.frombuffer(b"".join(map(_hashed, pieces)), np.uint64)
        mixed = hashes[:, None] * self._factors + self._shifts
        smallest: NDArray[np.uint64] = (mixed >> np.uint64(32)).min(axis=0)
        return smallest


def _hashed(piece: str) -> bytes:
    data = piece.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=8).digest()
