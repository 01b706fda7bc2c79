"""Parts: how they are planned, lowered, shown again, and kept in a row."""

from hypothesis import given
from hypothesis import strategies as st

from genlock.domain.delivery import MESSAGE_ONLY, PARTS_MAX, Level, Part, Step, again, dump_parts, load_parts, plan
from genlock.domain.result import PartKind, Piece

# What PostgreSQL can keep: everything but lone surrogates. NUL is escaped by JSON.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PARTS = st.lists(
    st.builds(
        Part,
        kind=st.sampled_from(PartKind),
        value=TEXT,
        level=st.sampled_from(Level),
        step=st.sampled_from(Step),
        message=st.none() | TEXT,
        file=st.none() | TEXT,
        gone=st.booleans(),
    )
).map(tuple)


def test_the_levels_go_down_from_address_over_bytes_and_document_to_text_and_end_there() -> None:
    part: Part | None = Part(kind=PartKind.FILE, value="https://files.example/1.png")
    levels = []
    while part is not None:
        levels.append(part.level)
        part = part.lower()
    assert levels == [Level.ADDRESS, Level.BYTES, Level.DOCUMENT, Level.TEXT]


@given(PARTS)
def test_lowering_a_part_drops_the_file_id_first_and_then_one_level(parts: tuple[Part, ...]) -> None:
    for part in parts:
        lower = part.lower()
        if lower is not None:
            assert (lower.kind, lower.value, lower.step) == (part.kind, part.value, part.step)
            assert (lower.message, lower.file, lower.gone) == (part.message, None, part.gone)
            assert (lower.level == part.level) == (part.file is not None)


def test_a_plan_keeps_the_order_and_omits_empty_pieces() -> None:
    pieces = [Piece(value="a"), Piece(value=" "), Piece(kind=PartKind.TEXT, value="b"), Piece(value="")]
    assert plan(pieces) == (Part(kind=PartKind.FILE, value="a"), Part(kind=PartKind.TEXT, value="b"))


def test_a_plan_has_a_limit() -> None:
    parts = plan(Piece(value=str(number)) for number in range(PARTS_MAX + 5))
    assert [part.value for part in parts] == [str(number) for number in range(PARTS_MAX)]


def test_a_planned_part_starts_at_the_best_level_with_nothing_done() -> None:
    [part] = plan([Piece(value="a")])
    assert (part.level, part.step, part.message, part.file, part.gone) == (Level.ADDRESS, Step.PUT, None, None, False)


def test_a_message_is_one_part_at_the_text_level() -> None:
    [part] = MESSAGE_ONLY
    assert (part.kind, part.level, part.step) == (PartKind.MESSAGE, Level.TEXT, Step.PUT)


@given(PARTS)
def test_showing_again_keeps_file_and_level_but_that_of_a_link_and_no_message(parts: tuple[Part, ...]) -> None:
    for before, after in zip(parts, again(parts), strict=True):
        assert (after.step, after.message, after.gone) == (Step.PUT, None, False)
        assert (after.kind, after.value, after.file) == (before.kind, before.value, before.file)
        was_link = before.kind is PartKind.FILE and before.level is Level.TEXT
        assert after.level is (Level.ADDRESS if was_link else before.level)


@given(PARTS)
def test_parts_survive_the_row(parts: tuple[Part, ...]) -> None:
    text = dump_parts(parts)
    assert load_parts(text) == parts
    assert "\x00" not in text


def test_a_job_without_parts_has_an_empty_row() -> None:
    assert dump_parts(()) == "[]"
    assert load_parts("[]") == ()


def test_a_row_written_before_a_field_existed_is_still_read() -> None:
    old = '[{"kind":"file","value":"a","level":"bytes","step":"put"}]'
    assert load_parts(old) == (Part(kind=PartKind.FILE, value="a", level=Level.BYTES),)
