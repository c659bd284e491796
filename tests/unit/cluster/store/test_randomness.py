from uuid import RFC_4122, UUID

from devlet.cluster.store.randomness import Randomness
from devlet.objects.names import SUFFIX_ALPHABET, SUFFIX_LENGTH


def test_uids_are_random_uuids_and_never_the_same() -> None:
    randomness = Randomness()
    uids = [randomness.uid() for _ in range(2000)]
    assert len(set(uids)) == len(uids), "also across the blocks in which the system is asked"
    assert {(UUID(uid).version, UUID(uid).variant) for uid in uids} == {(4, RFC_4122)}
    assert [str(UUID(uid)) for uid in uids] == uids
    assert uids[0] not in {Randomness().uid() for _ in range(10)}, "nor in another process"


def test_suffixes_use_the_whole_alphabet_of_generated_names() -> None:
    randomness = Randomness()
    suffixes = [randomness.suffix() for _ in range(2000)]
    assert {len(suffix) for suffix in suffixes} == {SUFFIX_LENGTH}
    assert set("".join(suffixes)) == set(SUFFIX_ALPHABET)
    assert len(set(suffixes)) > 1990, "two of 14 million are hardly ever the same"
