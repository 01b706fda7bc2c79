"""The database object: independent subjects over one session."""

import inspect

from genlock.ports import Database
from genlock.stores.database import SqlDatabase
from genlock.stores.session import Subject

SUBJECTS = [base for base in SqlDatabase.__mro__ if issubclass(base, Subject) and base not in (Subject, SqlDatabase)]


def test_no_two_subjects_define_the_same_name() -> None:
    defined: dict[str, type] = {}
    for subject in SUBJECTS:
        for name in vars(subject):
            if not name.startswith("__"):
                assert name not in defined, f"{name} is defined by {defined[name]} and {subject}"
                defined[name] = subject


def test_subjects_define_the_methods_of_the_port_and_no_others() -> None:
    port = {
        name: member
        for base in Database.__mro__
        for name, member in vars(base).items()
        if inspect.iscoroutinefunction(member)
    }
    defined = {
        name for subject in SUBJECTS for name, member in vars(subject).items()
        if inspect.iscoroutinefunction(member) and not name.startswith("_")
    }  # fmt: skip

    assert defined | {"close"} == port.keys()


def test_a_subject_depends_on_the_session_only() -> None:
    for subject in SUBJECTS:
        assert list(inspect.signature(subject).parameters) == ["session"], subject
