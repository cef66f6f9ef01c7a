"""The vault's key: made once, its owner's alone, and what it makes of a hash says nothing of it."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.artifacts.objects import ObjectDamagedError
from harness.artifacts.vault_key import NAME, existing_key, key_of, vault_key
from harness.files import sha256_bytes


def test_it_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    vault = tmp_path / "state" / "vault"
    assert existing_key(vault) is None
    first = vault_key(vault)
    assert vault_key(vault) == first == existing_key(vault)
    assert len((vault / NAME).read_bytes()) == 32
    assert stat.S_IMODE((vault / NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(vault.stat().st_mode) == 0o700
    assert [path.name for path in vault.iterdir()] == [NAME]


def test_processes_at_the_same_time_have_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: vault_key(tmp_path / "vault"), range(32)))
    assert len(keys) == 1


def test_a_hash_of_it_is_equal_for_equal_content_and_another_in_another_vault(
    tmp_path: Path,
) -> None:
    one, other = vault_key(tmp_path / "one"), vault_key(tmp_path / "other")
    labels = sha256_bytes(b"0110")
    assert one.of(labels) == one.of(labels) != one.of(sha256_bytes(b"0111"))
    assert labels != one.of(labels) != other.of(labels)
    assert repr(one).find((tmp_path / "one" / NAME).read_bytes().hex()) == -1


def test_a_file_system_without_links_has_one_key_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("harness.artifacts.vault_key.os.link", link)
    vault = tmp_path / "vault"
    first = vault_key(vault)
    assert vault_key(vault) == first == existing_key(vault)
    assert stat.S_IMODE((vault / NAME).stat().st_mode) == 0o600
    assert [path.name for path in vault.iterdir()] == [NAME]


def test_a_damaged_key_is_no_new_one(tmp_path: Path) -> None:
    vault_key(tmp_path)
    (tmp_path / NAME).write_bytes(b"short")
    with pytest.raises(ObjectDamagedError, match="has 5 bytes; expected 32"):
        vault_key(tmp_path)


def test_a_lost_key_is_no_new_one_and_no_plain_hash(tmp_path: Path) -> None:
    """As after a state directory that was restored without it."""
    secret = tmp_path / "held_out" / "rows.npz"
    secret.parent.mkdir()
    assert key_of(tmp_path, secret) is None, "a clone has neither"
    secret.write_bytes(b"rows")
    with pytest.raises(ObjectDamagedError, match="its key is gone"):
        key_of(tmp_path, secret)
    with pytest.raises(ObjectDamagedError, match="its key is gone"):
        vault_key(tmp_path)
    assert not (tmp_path / NAME).exists()
