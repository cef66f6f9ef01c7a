"""A team's ledger on a real PostgreSQL: many writers, a server that is killed, roles, migration."""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import ledger_samples
import pytest
from ledger_samples import full_ledger, open_ledger, place, read_state

from harness.clock import SystemClock
from harness.domain.team_ledger import TeamLedger, schema_of, url_problem
from harness.errors import (
    LedgerBusyError,
    LedgerDamagedError,
    LedgerError,
    LedgerReadOnlyError,
    RefusedError,
)
from harness.ledger import Ledger
from harness.ledger.facts import AlarmRaised
from harness.ledger.migrate import grants, migrate
from harness.ledger.state_version import MIGRATING
from harness.ledger.store import CommitUnknownError
from harness.ledger.verify import verify
from tests.postgres import running

pytest.importorskip("psycopg")
ServerDatabase = pytest.importorskip("harness.ledger.postgres").ServerDatabase

WORKER = Path(__file__).with_name("mint_worker.py")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def server(postgres):
    ledger_samples.PLACES.append(postgres.place)
    yield postgres
    ledger_samples.PLACES.clear()


def start(url, *arguments):
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "MINT_URL": url}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    )


def mint_together(url, folder, processes, each, *more):
    """All processes also race to create the ledger."""
    workers = [start(url, folder, each, *more) for _ in range(processes)]
    ids = []
    for worker in workers:
        out, errors = worker.communicate(timeout=280)
        assert worker.returncode == 0, errors
        ids += out.split()
    return ids


def first_line(worker):
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(worker.stdout.fileno(), 1)
    return line.decode().strip()


def check_mint(folder, ids, expected):
    assert len(ids) == len(set(ids)) == expected
    with open_ledger(folder, read_only=True) as ledger:
        assert [item.id for item in ledger.experiments()] == sorted(ids)
        assert len(ledger.writers()) == 1
    assert verify(place(folder), folder / "anchors") == []


def test_processes_append_to_one_chain(server, tmp_path):
    check_mint(tmp_path, mint_together(server.url(), tmp_path, 4, 10), 40)


def test_case_34_on_a_server_every_folder_is_made_by_exactly_one_process(server, tmp_path):
    folders = tmp_path / "experiments"
    (folders / "exp-0003").mkdir(parents=True)
    ids = mint_together(server.url(), tmp_path, 4, 5, folders)
    assert len(set(ids)) == 20
    assert "exp-0003" not in ids
    assert {path.name for path in folders.iterdir()} == {*ids, "exp-0003"}


@pytest.mark.slow
def test_sixteen_processes_open_3200_experiments_on_a_server(server, tmp_path):
    check_mint(tmp_path, mint_together(server.url(), tmp_path, 16, 200), 3200)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("processes", "each"), [(4, 150), (16, 200)])
def test_a_killed_server_loses_nothing_acknowledged_and_writers_go_on(tmp_path, processes, each):
    choose = random.Random(19)
    with running() as own:
        ledger_samples.PLACES.append(own.place)
        workers = [start(own.url(), tmp_path, each) for _ in range(processes)]
        # Byte by byte: what a buffer took in here, `communicate` would not give back.
        told = [first_line(worker) for worker in workers]
        for _ in range(3):
            time.sleep(0.2 + choose.random())
            own.kill()
            own.start()
        said = ""
        for worker in workers:
            out, errors = worker.communicate(timeout=1000)
            assert worker.returncode == 0, errors
            told += out.split()
            said += errors
        assert "ledger_connection_lost" in said
        with open_ledger(tmp_path, read_only=True) as ledger:
            kept = [item.id for item in ledger.experiments()]
        assert len(told) == len(set(told)) == processes * each
        assert set(told) <= set(kept)
        assert len(kept) <= len(told) + 3 * len(workers)
        assert verify(place(tmp_path), tmp_path / "anchors") == []
        ledger_samples.PLACES.clear()


def test_a_server_that_is_away_is_told_and_the_result_is_kept(tmp_path):
    with running() as own:
        ledger_samples.PLACES.append(own.place)
        with full_ledger(tmp_path, busy_seconds=0.2) as ledger:
            one = {"kind": "loss_nan", "severity": "fatal", "message": "m", "step": 3}
            alarm = AlarmRaised(experiment="exp-0001", run="run-01", alarm=one)
            before = ledger.position()
            own.kill()
            with pytest.raises(LedgerError, match=r"away|reached") as told:
                ledger.append(alarm)
            assert told.value.code in ("ledger_unreachable", "ledger_connection_lost")
            own.start()
            assert len(list((tmp_path / "spool").iterdir())) == 1
            ledger.open_experiment(hypothesis="after", parent=None, by="me")
            assert ledger.position() == before + 2
            assert list((tmp_path / "spool").iterdir()) == []
        assert verify(place(tmp_path), tmp_path / "anchors") == []
        ledger_samples.PLACES.clear()


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "lost"])
def test_a_commit_whose_answer_was_lost_is_asked_for(server, tmp_path, monkeypatch, stored):
    with full_ledger(tmp_path) as ledger:
        before, whole = ledger.position(), ServerDatabase._commit

        def silent(self, driver):
            if stored:
                whole(self, driver)
            else:
                driver.exec_driver_sql("ROLLBACK")
            raise CommitUnknownError("away", hint="")

        def once(self, driver):
            monkeypatch.setattr(ServerDatabase, "_commit", whole)
            silent(self, driver)

        monkeypatch.setattr(ServerDatabase, "_commit", once)
        if stored:
            ledger.open_experiment(hypothesis="h", parent=None, by="me")
        else:
            with pytest.raises(LedgerError, match="nothing of it was written") as told:
                ledger.open_experiment(hypothesis="h", parent=None, by="me")
            assert told.value.code == "ledger_connection_lost"
        assert ledger.position() == before + stored
        ledger.open_experiment(hypothesis="next", parent=None, by="me")
    assert verify(place(tmp_path), tmp_path / "anchors") == []


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "lost"])
def test_a_result_whose_commit_nobody_answers_is_recorded_once(
    server, tmp_path, monkeypatch, stored
):
    one = {"kind": "loss_nan", "severity": "fatal", "message": "m", "step": 3}
    alarm = AlarmRaised(experiment="exp-0001", run="run-01", alarm=one)
    with full_ledger(tmp_path) as ledger:
        before, whole = ledger.position(), ServerDatabase._commit

        def silent(self, driver):
            whole(self, driver) if stored else driver.exec_driver_sql("ROLLBACK")
            raise CommitUnknownError("The server went away.", hint="")

        monkeypatch.setattr(ServerDatabase, "_commit", silent)
        with pytest.raises(CommitUnknownError, match=r"alarm_raised\) was kept in"):
            ledger.append(alarm)
        monkeypatch.undo()
        ledger.open_experiment(hypothesis="next", parent=None, by="me")
        assert ledger.position() == before + 2
        kinds = [fact.kind for fact in ledger.facts(before)]
        assert sorted(kinds) == ["alarm_raised", "experiment_opened"]
        assert list((tmp_path / "spool").iterdir()) == []


def test_case_36_a_writer_that_waits_in_vain_says_so_and_readers_do_not_wait(server, tmp_path):
    with full_ledger(tmp_path) as holder, holder.exclusive():
        done = []

        def other():
            with open_ledger(tmp_path, busy_seconds=0.3, clock=SystemClock()) as waiting:
                with pytest.raises(LedgerBusyError, match="being written by another process"):
                    waiting.open_experiment(hypothesis="h", parent=None, by="me")
                done.append(len(waiting.experiments()))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
        assert done == [3]


def test_a_changed_and_a_missing_fact_are_named(server, tmp_path):
    full_ledger(tmp_path).close()
    schema = place(tmp_path).schema
    server.sql(f"UPDATE {schema}.facts SET data = data || ' '::bytea WHERE seq = 7")
    assert [problem.seq for problem in verify(place(tmp_path), tmp_path / "anchors")] == [7]
    server.sql(f"DELETE FROM {schema}.facts WHERE seq = 7")
    assert verify(place(tmp_path), tmp_path / "anchors")[0].seq == 8


def test_a_role_appends_and_reads_and_changes_nothing(server, tmp_path):
    full_ledger(tmp_path).close()
    schema = place(tmp_path).schema
    tag = schema[-8:]
    writer, reader = f"w_{tag}", f"r_{tag}"
    server.sql(f"CREATE ROLE {writer} LOGIN; CREATE ROLE {reader} LOGIN;")
    server.sql("\n".join(grants(schema, append=writer, read=reader)))
    as_writer, as_reader = (
        TeamLedger(server.url(user), schema, tmp_path) for user in (writer, reader)
    )
    anchors = tmp_path / "anchors"
    with Ledger.open(as_writer, anchors=anchors, clock=SystemClock()) as ledger:
        ledger.open_experiment(hypothesis="by the role", parent=None, by="me")
        ledger.rebuild()
    for words in (
        "UPDATE {}.facts SET at = at",
        "DELETE FROM {}.facts",
        "TRUNCATE {}.facts",
        "UPDATE {}.meta SET value = 'x'",
        "DROP TABLE {}.facts",
    ):
        for user in (writer, reader):
            with pytest.raises(subprocess.CalledProcessError) as refused:
                server.sql(words.format(schema), user)
            assert "permission denied" in refused.value.stderr or "owner" in refused.value.stderr
    for user_place in (as_writer, as_reader):
        assert verify(user_place, anchors) == []
    with Ledger.open(as_reader, anchors=anchors, clock=SystemClock(), read_only=True) as ledger:
        assert len(ledger.experiments()) == 4
    with (
        Ledger.open(as_reader, anchors=anchors, clock=SystemClock()) as ledger,
        pytest.raises(LedgerReadOnlyError, match="lacks the right"),
    ):
        ledger.open_experiment(hypothesis="h", parent=None, by="me")


def test_a_viewer_that_reads_stops_no_writer(server, tmp_path):
    with full_ledger(tmp_path) as ledger, open_ledger(tmp_path, read_only=True) as viewer:
        with viewer.snapshot():
            before = viewer.counts()
            ledger.open_experiment(hypothesis="h", parent=None, by="me")
            assert viewer.counts() == before
        assert viewer.counts() != before


def test_facts_move_to_a_server_and_back(server, tmp_path):
    file, there = tmp_path / "ledger.db", place(tmp_path)
    with open_at(file, tmp_path) as ledger:
        fill(ledger)
        state = state_of(ledger)
        assert migrate(ledger, there, clock=SystemClock()) == ledger.position()
        with pytest.raises(LedgerError, match="moved to another store"):
            ledger.open_experiment(hypothesis="too late", parent=None, by="me")
    with pytest.raises(LedgerError, match="moved to another store"):
        open_at(file, tmp_path)
    with open_at(there, tmp_path) as ledger:
        assert state_of(ledger) == state
        ledger.open_experiment(hypothesis="on the server", parent=None, by="me")
        assert migrate(ledger, file, clock=SystemClock()) == 1
    with open_at(file, tmp_path) as ledger:
        assert [one.id for one in ledger.experiments()] == ["exp-0001", "exp-0002", "exp-0003"]
    assert verify(file, tmp_path / "anchors") == []


def test_to_the_same_schema_by_another_spelling_nothing_moves(server, tmp_path):
    """It waited for its own lock, and spoke of another process."""
    there = place(tmp_path)
    other = there._replace(url=f"{there.url}&application_name=me")
    with open_at(there, tmp_path) as ledger:
        fill(ledger)
        with pytest.raises(RefusedError, match=r"is the ledger that .* names") as caught:
            migrate(ledger, other, clock=SystemClock())
        assert caught.value.code == "already_there"
        ledger.open_experiment(hypothesis="it goes on", parent=None, by="me")


@pytest.mark.parametrize("more", ["&nonsense=1", "&port=99999"])
def test_a_url_that_leads_nowhere_is_told_with_what_to_do(server, tmp_path, more):
    there = place(tmp_path)
    with pytest.raises(LedgerError) as caught:
        open_at(there._replace(url=f"{there.url}{more}"), tmp_path)
    assert caught.value.code == "ledger_unreachable"
    assert "Nothing was written" in caught.value.hint


def test_a_migration_that_was_cut_goes_on_and_other_facts_are_refused(
    server, tmp_path, monkeypatch
):
    file, there = tmp_path / "ledger.db", place(tmp_path)
    with open_at(file, tmp_path) as ledger:
        fill(ledger)
        monkeypatch.setattr("harness.ledger.migrate.make_state", cut)
        with pytest.raises(KeyboardInterrupt):
            migrate(ledger, there, clock=SystemClock())
        monkeypatch.undo()
        with pytest.raises(LedgerError, match="which did not end"):
            open_at(there, tmp_path)
        state = server.sql(f"SELECT state FROM {there.schema}.store_version")
        assert int(state) == MIGRATING
        server.sql(f"DELETE FROM {there.schema}.facts WHERE position > 1")
        assert migrate(ledger, there, clock=SystemClock()) == ledger.position() - 1
    other = tmp_path / "other"
    with open_at(other / "ledger.db", other) as ledger:
        ledger.open_experiment(hypothesis="another", parent=None, by="me")
        with pytest.raises(RefusedError, match="is not empty"):
            migrate(ledger, there, clock=SystemClock())


def test_a_migration_switches_before_the_source_stands_still(server, tmp_path):
    """Cut at the switch, the source goes on, and so does the next migration."""
    file, there = tmp_path / "ledger.db", place(tmp_path)
    with open_at(file, tmp_path) as ledger:
        fill(ledger)
        with pytest.raises(KeyboardInterrupt):
            migrate(ledger, there, clock=SystemClock(), switch=cut)
    with open_at(file, tmp_path) as ledger:
        assert migrate(ledger, there, clock=SystemClock()) == 0
    assert verify(there, tmp_path / "anchors") == []


def cut(*_):
    raise KeyboardInterrupt


def open_at(where, folder):
    folder.mkdir(exist_ok=True)
    return Ledger.open(where, anchors=folder / "anchors", clock=SystemClock())


def fill(ledger):
    for _ in range(2):
        ledger.open_experiment(hypothesis="h", parent=None, by="me")


def state_of(ledger):
    with ledger.connection() as connection:
        return read_state(connection)


def test_a_ledger_that_is_gone_from_the_server_is_no_new_one(server, tmp_path):
    full_ledger(tmp_path).close()
    server.sql(f"DROP SCHEMA {place(tmp_path).schema} CASCADE")
    with pytest.raises(LedgerDamagedError, match="is gone"):
        open_ledger(tmp_path)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("postgresql://ada:secret@db/x", "password"),
        ("postgresql://db/x?password=secret", "password"),
        ("postgres://db/x", "begin with"),
        ("postgresql://db", "no database"),
        ("postgresql://db/x?options=-csearch_path", "environment"),
        ("postgresql://[db/x", "no URL"),
    ],
)
def test_a_url_with_a_secret_or_without_a_database_is_refused(url, what):
    problem = url_problem(url)
    assert what in problem
    assert "secret" not in problem


def test_schemas_need_no_quotes_and_differ():
    long = "p" * 64
    names = {schema_of(one) for one in ("digits-0a1b", "0-x.y", long, f"{long[:-1]}q")}
    assert len(names) == 4
    assert all(name.isidentifier() and len(name) <= 63 for name in names)
