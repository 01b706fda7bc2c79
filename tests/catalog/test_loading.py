"""Loading: a mistake in a file is reported with its place and what is wrong."""

import copy
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genlock.catalog import load
from genlock.catalog.loader import load_providers, read
from genlock.domain.errors import InvalidCatalog
from tests.catalog.model_files import GOOD, write

BROKEN = [
    # (what is replaced, by what, the message)
    ('vendor = "Maker"', "", "maker.toml: vendor is missing"),
    ('vendor = "Maker"', "vendor = 5", "maker.toml: vendor must be text, not 5"),
    ('vendor = "Maker"', 'vendor = "Maker"\ncolour = 1', "maker.toml: unknown key colour"),
    ('title = "One"', "", "maker.toml: maker/one: title is missing"),
    ('title = "One"', 'title = "One"\ntitel = "x"', "maker.toml: maker/one: unknown key titel"),
    ("expected_seconds = 10", "", "maker.toml: maker/one: expected_seconds is missing"),
    (
        "expected_seconds = 10",
        "expected_seconds = true",
        "maker.toml: maker/one: expected_seconds must be a whole number, not True",
    ),
    (
        "expected_seconds = 10",
        "expected_seconds = 61",
        "maker.toml: maker/one: expected_seconds must be more than 0 and at most deadline_seconds",
    ),
    ('outputs = ["image"]', "", "maker.toml: maker/one: outputs is missing"),
    (
        'outputs = ["image"]',
        'outputs = ["smell"]',
        "maker.toml: maker/one: outputs must be one of image, video, audio, text, not 'smell'",
    ),
    (
        'outputs = ["image"]',
        "outputs = [1]",
        "maker.toml: maker/one: outputs must be one of image, video, audio, text, not 1",
    ),
    ("expected_seconds", 'status = "paused"\nexpected_seconds', "maker.toml: maker/one: is paused but gives no reason"),
    (
        "expected_seconds",
        'status = "asleep"\nexpected_seconds',
        "maker.toml: maker/one: status must be one of offered, hidden, paused, dead, not 'asleep'",
    ),
    (
        "expected_seconds",
        "count = 0\nexpected_seconds",
        "maker.toml: maker/one: count must be a number of 1 or more, or the name of a field, not 0",
    ),
    (
        "expected_seconds",
        'count = "many"\nexpected_seconds',
        "maker.toml: maker/one: count names 'many', which is not a field of this model",
    ),
    (
        "expected_seconds",
        "fixed = { size = 1 }\nexpected_seconds",
        "maker.toml: maker/one: size: is both a field and fixed",
    ),
    ('type = "text"', 'type = "poem"', "maker.toml: maker/one: prompt: type must be one of text, number, integer,"),
    ("max_length = 10", 'max_length = "10"', "maker.toml: maker/one: prompt: max_length must be a whole number"),
    (
        "max_length = 10",
        "max_length = 10, min_length = 11",
        "maker.toml: maker/one: prompt: max_length is less than min_length",
    ),
    ("max_length = 10", 'choices = ["a"]', "maker.toml: maker/one: prompt: text takes no choices"),
    ('name = "count"', 'name = "size"', "maker.toml: maker/one: size: is described twice"),
    ('choices = ["1K", "2K"], ', "", "maker.toml: maker/one: size: a choice needs choices"),
    ('choices = ["1K", "2K"]', 'choices = ["1K", "1K"]', "maker.toml: maker/one: size: choices has a value twice"),
    (
        'choices = ["1K", "2K"]',
        'choices = "sizes"',
        "maker.toml: maker/one: size: choices names 'sizes', which this file does not define under [choices]",
    ),
    (
        'choices = ["1K", "2K"]',
        'choices = [["1K"]]',
        "maker.toml: maker/one: size: choices must be a list of values, or a table of value = label",
    ),
    ('default = "1K"', 'default = "8K"', "maker.toml: maker/one: size: default '8K' must be one of 1K, 2K"),
    ('default = "1K"', 'default = "1k"', "maker.toml: maker/one: size: default '1k' must be written as '1K'"),
    (
        "max = 4, default = 1",
        "max = 4, default = 7",
        "maker.toml: maker/one: count: default 7 must be a whole number from 1 to 4",
    ),
    ("min = 1, max = 4", 'min = "one"', "maker.toml: maker/one: count: min must be a number, not 'one'"),
    ("credits = 3", "credits = -3", "maker.toml: maker/one: price 2: credits must be a number of 0 or more, not -3"),
    (
        "credits = 3",
        "credits = 1000000001",
        "maker.toml: maker/one: price 2: credits must be at most 1000000000, not 1000000001",
    ),
    ("credits = 3", 'credits = "3"', "maker.toml: maker/one: price 2: credits must be a number of 0 or more, not '3'"),
    (
        "credits = 3",
        'credits = 3, times = "n"',
        "maker.toml: maker/one: price 2: times names 'n', which is not a field of this model",
    ),
    (
        "credits = 3",
        'credits = 3, times = "count", count = "count"',
        "maker.toml: maker/one: price 2: has both times and count; a row can have only one measure",
    ),
    ("credits = 3", "credits = 3, each = 0", "maker.toml: maker/one: price 2: each must be 1 or more"),
    (
        'when = { size = "2K" }',
        'when = { size = "4K" }',
        "maker.toml: maker/one: price 2: when.size: '4K' is not one of the field's choices",
    ),
    (
        ', { when = { size = "2K" }, credits = 3 }',
        "",
        "maker.toml: maker/one: prices: no row for size = 2K",
    ),
    (
        'prices = [{ when = { size = "1K" }, credits = 1.5 }, { when = { size = "2K" }, credits = 3 }]',
        "",
        "maker.toml: maker/one: is offered but has no price",
    ),
    (
        "fields = [",
        'rules = [{ any_of = ["image"] }]\nfields = [',
        "maker.toml: maker/one: rule 1: any_of names 'image', which is not a field of this model",
    ),
    (
        "fields = [",
        'rules = [{ when = { size = "1K" } }]\nfields = [',
        "maker.toml: maker/one: rule 1: needs exactly one of any_of, require, forbid, apart, never, most",
    ),
    (
        "fields = [",
        "rules = [{ never = true }]\nfields = [",
        "maker.toml: maker/one: rule 1: needs a condition: when or given",
    ),
    (
        "fields = [",
        'rules = [{ apart = ["size"] }]\nfields = [',
        "maker.toml: maker/one: rule 1: apart must be a list of lists of fields",
    ),
    (
        "fields = [",
        'rules = [{ most = { size = "1" } }]\nfields = [',
        "maker.toml: maker/one: rule 1: most: size must be a whole number, not '1'",
    ),
    (
        "fields = [",
        "rules = [{ most = { n = 1 } }]\nfields = [",
        "maker.toml: maker/one: rule 1: most names 'n', which is not a field of this model",
    ),
    ("fields = [", "fields = [ 5,", "maker.toml: maker/one: field 1: must be a table"),
    ("fields = [", "fields = ", "maker.toml: is not TOML: "),
    (
        "expected_seconds",
        'provider = "elsewhere"\nexpected_seconds',
        (
            "maker.toml: maker/one: provider must be one of kie, fal, replicate, not 'elsewhere'; "
            "providers.toml lists them"
        ),
    ),
    ("expected_seconds", "provider = 5\nexpected_seconds", "maker.toml: maker/one: provider must be text, not 5"),
    ("fields = [", 'aliases = ["a", 1]\nfields = [', "maker.toml: maker/one: aliases must be text, not 1"),
    ("fields = [", 'fields = [ { type = "text" },', "maker.toml: maker/one: field 1: name is missing"),
    ("credits = 3 }", "credits = 3, label = 4 }", "maker.toml: maker/one: price 2: label must be text, not 4"),
]


def test_a_good_file_loads(tmp_path: Path) -> None:
    model = load(data=write(tmp_path, GOOD)).get("maker/one")
    assert (model.vendor, model.title, [field.name for field in model.fields]) == (
        "Maker",
        "One",
        ["prompt", "size", "count"],
    )
    assert model.credits(model.validate({"prompt": "x"})) == 1500


@pytest.mark.parametrize(("old", "new", "message"), BROKEN, ids=lambda value: str(value)[:50])
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(InvalidCatalog) as caught:
        load(data=write(tmp_path, GOOD.replace(old, new, 1)))
    assert str(caught.value).startswith(message)


def test_an_id_belongs_to_one_file(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "another.toml")
    with pytest.raises(InvalidCatalog, match=r"^maker.toml: maker/one: is already described in another file$"):
        load(data=write(tmp_path, GOOD))


def test_a_combination_that_does_not_exist_needs_no_price(tmp_path: Path) -> None:
    without = GOOD.replace(', { when = { size = "2K" }, credits = 3 }', "")
    ruled = without.replace("fields = [", 'rules = [{ when = { size = "2K" }, never = true }]\nfields = [')
    assert load(data=write(tmp_path, ruled)).get("maker/one").prices


def test_a_field_takes_its_description_from_the_common_list(tmp_path: Path) -> None:
    write(
        tmp_path,
        'prompt = { en = "What?", ru = "Что?" }\ncount = { en = "How many", advanced = true }\n',
        "shared_fields.toml",
    )
    model = load(data=write(tmp_path, GOOD)).get("maker/one")
    assert [(field.about.get("en"), field.advanced) for field in model.fields] == [
        ("What?", False),
        (None, False),
        ("How many", True),
    ]


def test_choices_may_be_shared_and_labelled(tmp_path: Path) -> None:
    text = GOOD.replace("[models", '[choices.sizes]\n1K = "small"\n2K = "large"\n[models', 1)
    text = text.replace('choices = ["1K", "2K"]', 'choices = "sizes"')
    model = load(data=write(tmp_path, text)).get("maker/one")
    assert model.validate({"prompt": "x", "size": "Large"})["size"] == "2K"


RULED = GOOD.replace(
    "fields = [",
    """extras = [{ credits = 1, count = "prompt", free = 1, given = ["prompt"] }]
rules = [{ when = { size = ["2K"] }, most = { count = 2 } }, { apart = [["prompt"], ["size"]] },
    { when = { size = "2K" }, given = ["count"], never = true }]
fields = [""",
)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.decimals(allow_nan=False, allow_infinity=False, places=1),
    st.sampled_from(["", "prompt", "size", "image", "1K", "choice", "offered"]),
    st.lists(st.sampled_from([1, "prompt", "x", ["size"]]), max_size=2),
    st.dictionaries(st.sampled_from(["size", "en", "x"]), st.sampled_from([1, "1K", ["2K"]]), max_size=2),
)


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(leaf for key, value in items for leaf in leaves(value, (*path, key)))]


def test_any_value_in_a_file_gives_a_model_or_an_error_that_names_the_file(fuzz_cases: int) -> None:
    settings(max_examples=fuzz_cases // 100)(given(st.data())(gives_a_model_or_an_error))()


def gives_a_model_or_an_error(data: st.DataObject) -> None:
    file = tomllib.loads(RULED, parse_float=Decimal)
    *path, last = data.draw(st.sampled_from(leaves(file)[1:]))
    broken: Any = copy.deepcopy(file)
    place = broken
    for key in path:
        place = place[key]
    place[last] = data.draw(ODD)
    try:
        for model in read(broken, "maker.toml", {}, load_providers()):
            assert model.title is not None
    except InvalidCatalog as error:
        for line in str(error).splitlines():
            assert line.startswith("maker.toml: ")
            assert "pydantic" not in line
            assert "Input should" not in line
