"""Numbers, plural forms, dates and lists as each language writes them; values that users write are escaped."""

from datetime import UTC, datetime
from decimal import Decimal

from genlock.i18n.translator import Html, package_texts, plural_form, translator

LANGUAGES = package_texts().languages


def test_the_plural_form_goes_with_the_number() -> None:
    numbers = (0, 1, 2, 4, 5, 11, 12, 21, 22, 111, 112, 121, Decimal("0.8"), Decimal("1.0"), 2.0)

    assert [plural_form(LANGUAGES["en"], number) for number in numbers] == [
        "other", "one", "other", "other", "other", "other", "other", "other", "other", "other", "other", "other",
        "other", "one", "other",
    ]  # fmt: skip
    assert [plural_form(LANGUAGES["ru"], number) for number in numbers] == [
        "many", "one", "few", "few", "many", "many", "many", "one", "few", "many", "many", "one",
        "other", "one", "few",
    ]  # fmt: skip


def test_money_is_written_as_the_language_writes_it() -> None:
    assert [translator("en").credits(amount) for amount in (1000, 2000, 800, 1_234_500, 0)] == [
        "1\u00a0credit", "2\u00a0credits", "0.8\u00a0credits", "1,234.5\u00a0credits", "0\u00a0credits",
    ]  # fmt: skip
    assert [translator("ru").credits(amount) for amount in (1000, 2000, 5000, 800, 1_234_500)] == [
        "1\N{NO-BREAK SPACE}кредит",
        "2\N{NO-BREAK SPACE}кредита",
        "5\N{NO-BREAK SPACE}кредитов",
        "0,8\N{NO-BREAK SPACE}кредита",
        "1\N{NO-BREAK SPACE}234,5\N{NO-BREAK SPACE}кредита",
    ]  # fmt: skip


def test_numbers_of_a_column_have_the_same_decimals() -> None:
    english, russian = translator("en"), translator("ru")
    assert [english.dollars(Decimal(amount), fine=True) for amount in ("0.0325", "0.3", "1234")] == [
        "$0.0325", "$0.3000", "$1,234.0000",
    ]  # fmt: skip
    assert [english.aligned_amount(amount) for amount in (800, 24_000, 1_234_500)] == ["0.80", "24.00", "1,234.50"]
    assert english.aligned_amount(1_001) == "1.001", "nothing is hidden"
    assert [english.aligned_percent(amount) for amount in (Decimal("0.5"), 0.057)] == ["50.0%", "5.7%"]
    assert (russian.aligned_amount(800), russian.aligned_percent(0.057)) == ("0,80", "5,7\u00a0%")


def test_amounts_of_a_sum_add_up_below_a_dollar_too() -> None:
    def written(*amounts: str) -> list[str]:
        return translator("en").dollars_of_sum(*map(Decimal, amounts))

    assert written("0.032", "0.016", "0.016") == ["$0.0320", "$0.0160", "$0.0160"]
    assert written("1.2", "0.355", "0.845") == ["$1.2000", "$0.3550", "$0.8450"]
    assert written("120", "50.5", "69.5") == ["$120.00", "$50.50", "$69.50"]
    assert written("0", "0", "0") == ["$0.00", "$0.00", "$0.00"]


def test_a_lowest_price_has_the_noun_in_the_form_that_follows_from() -> None:
    amounts = (1000, 4000, 5000, 21_000, 800)
    assert [translator("en").from_credits(amount) for amount in amounts[:2]] == [
        "from 1\u00a0credit",
        "from 4\u00a0credits",
    ]
    assert [translator("ru").from_credits(amount) for amount in amounts] == [
        "от 1\N{NO-BREAK SPACE}кредита",
        "от 4\N{NO-BREAK SPACE}кредитов",
        "от 5\N{NO-BREAK SPACE}кредитов",
        "от 21\N{NO-BREAK SPACE}кредита",
        "от 0,8\N{NO-BREAK SPACE}кредита",
    ]  # fmt: skip


def test_a_limit_has_the_noun_in_the_form_that_follows_up_to() -> None:
    numbers = (1, 2, 5, 11, 21, 1000, 3072)
    russian = [translator("ru").html("ask.text_hint", n=number).split(", ")[1] for number in numbers]
    assert [text.rstrip(".").split("\N{NO-BREAK SPACE}")[-1] for text in russian] == [
        "символа", "символов", "символов", "символов", "символа", "символов", "символов",
    ]  # fmt: skip
    limits = [
        translator(language).plain("dashboard.models.inputs_table.limit.characters", n=1) for language in ("en", "ru")
    ]
    assert limits == ["up to 1 character", "до 1\N{NO-BREAK SPACE}символа"]
    assert translator("en").plain("dashboard.models.inputs_table.limit.min_count", n=1) == "at least 1 item"


def test_a_number_has_up_to_three_decimals_and_no_trailing_zeros() -> None:
    numbers = (Decimal("1234567.8915"), Decimal("2.50"), 0.1, -3, Decimal("0.0004"))

    assert [translator("en").number(number) for number in numbers] == ["1,234,567.892", "2.5", "0.1", "-3", "0"]
    assert translator("ru").number(Decimal("1234567.8")) == "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567,8"


def test_dates_are_written_as_the_language_writes_them() -> None:
    at = datetime(2026, 11, 5, 9, 7, 3, tzinfo=UTC)
    english, russian = translator("en"), translator("ru")

    assert (english.day(at), russian.day(at)) == ("5 Nov", "5 нояб.")
    assert (english.date(at), russian.date(at)) == ("5 Nov 2026", "5 нояб. 2026")
    assert (english.day_and_time(at), russian.day_and_time(at)) == ("5 Nov, 09:07", "5 нояб., 09:07")
    assert (english.day_and_second(at), russian.day_and_second(at)) == ("5 Nov, 09:07:03", "5 нояб., 09:07:03")


def test_a_duration_is_written_in_its_largest_fitting_unit() -> None:
    assert [translator("en").duration(seconds) for seconds in (0.2, 55, 150, 3600, 90_000)] == [
        "1\u00a0second", "55\u00a0seconds", "2\u00a0minutes", "60\u00a0minutes", "25\u00a0hours",
    ]  # fmt: skip
    russian = [translator("ru").duration(seconds) for seconds in (1, 2, 55, 300)]
    assert [text.replace("\u00a0", "_") for text in russian] == ["1_сек", "2_сек", "55_сек", "5_мин"]


def test_lists_end_with_the_conjunction_of_the_language() -> None:
    assert translator("en").list(["a", "b", "c"]) == "a, b, and c"
    assert translator("ru").list(["a", "b"]) == "a и b"
    assert translator("ru").list(["a", "b", "c"], style="or") == "a, b или c"
    assert translator("en").list(["a"], style="or") == "a"


def test_a_language_has_a_name_in_every_other_language() -> None:
    assert [translator(code).language_name("ru") for code in ("en", "ru")] == ["Russian", "русский"]


def test_values_that_users_write_cannot_break_the_html() -> None:
    assert translator("en").html("menu.hello", name="<b>&", models=Html("<i>9</i>")).count("&lt;b&gt;&amp;") == 1
    assert "<b>" in translator("en").plain("list.row", title="<b>", price="1")
