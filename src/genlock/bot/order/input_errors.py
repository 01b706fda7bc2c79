"""Texts that explain why a value was refused."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from genlock.bot.order.draft import Problem
from genlock.bot.order.questions import broken_rule
from genlock.bot.screen_context import ANY, field_label, members, value_label
from genlock.domain.catalog import NOTHING, Model
from genlock.domain.field import Field, FieldType
from genlock.domain.rule import Rule
from genlock.i18n.translator import Html, Translator

Values = Mapping[str, Any]


def explain(problem: Problem, model: Model, values: Values, translator: Translator) -> Html:
    """Explain what is wrong with the last value, or with the combination of values."""
    if (text := explain_file(problem, translator)) is not None:
        return text
    field = model.field(problem.field)
    explain_problem = _EXPLAIN.get(problem.name)
    if problem.name == "range" and problem.allowed:  # without limits it comes from a rule
        explain_problem = _range
    rule = broken_rule(model, values)
    if (
        explain_problem is not None
        and field is not None
        and not (problem.name == "missing" and rule and not field.required)
    ):
        return explain_problem(problem, field, translator)
    if rule is not None:
        return _rule(rule, model, values, translator)
    return translator.html("refused.combination")


def explain_file(problem: Problem, translator: Translator) -> Html | None:
    """Explain what is wrong with a file; None for other problems."""
    name, allowed = problem.name, problem.allowed
    if name == "uploads":
        return translator.html("limit.uploads", time=translator.duration(allowed["wait"]))
    if name in ("too_big", "too_long"):
        to_text = translator.file_size if name == "too_big" else translator.duration
        return translator.html(f"refused.{name}", given=to_text(allowed["given"]), most=to_text(allowed["most"]))
    if name == "full":
        return translator.html("refused.full", n=allowed["n"])
    if name.startswith(("too_big_", "upload_", "wrong_kind_", "no_place_", "not_a_file_", "file_gone", "result_gone")):
        return translator.html(f"refused.{name}")
    return None


def _length(problem: Problem, _: Field, translator: Translator) -> Html:
    low, high, given = (problem.allowed.get(name) for name in ("min", "max", "given"))
    characters = translator.plain("unit.characters", n=given or 0)
    if low and high:
        return translator.html("refused.length_between", low=low, high=high, given=characters)
    if high:
        return translator.html("refused.length_most", high=high, given=characters)
    return translator.html("refused.length_least", low=low, given=characters)


def _range(problem: Problem, _: Field, translator: Translator) -> Html:
    low, high = problem.allowed.get("min"), problem.allowed.get("max")
    high = None if high is not None and high >= ANY else high
    if low is not None and high is not None:
        return translator.html("refused.number_between", low=low, high=high)
    if low is not None:
        return translator.html("refused.number_least", low=low)
    return translator.html("refused.number_most", high=high) if high is not None else translator.html("refused.number")


def _type(problem: Problem, field: Field, translator: Translator) -> Html:
    match field.type:
        case FieldType.NUMBER | FieldType.INTEGER:
            if problem.allowed.get("min") is not None and (problem.allowed.get("max") or ANY) < ANY:
                return _range(problem, field, translator)
            return translator.html("refused.whole_number" if field.type is FieldType.INTEGER else "refused.number")
        case FieldType.BOOLEAN:
            return translator.html("refused.boolean")
        case FieldType.OBJECTS:
            return translator.html("refused.objects", members=members(field, translator))
        case FieldType.TASK:
            return translator.html("refused.task")
        case _:
            return translator.html("refused.text")


def _count(problem: Problem, _: Field, translator: Translator) -> Html:
    low, high, given = (problem.allowed.get(name) for name in ("min", "max", "given"))
    if high is None:
        return translator.html("refused.count_least", low=low, given=given)
    return translator.html("refused.count", low=low, high=high, given=given)


def _address(_: Problem, field: Field, translator: Translator) -> Html:
    return translator.html(f"refused.address_{field.type.value}")


def _missing(_: Problem, field: Field, translator: Translator) -> Html:
    return translator.html("refused.missing", field=field_label(field, translator))


def _choice(_: Problem, __: Field, translator: Translator) -> Html:
    return translator.html("refused.choice")


def _step(problem: Problem, _: Field, translator: Translator) -> Html:
    return translator.html("refused.step", step=problem.allowed.get("step", 1))


_EXPLAIN: Mapping[str, Callable[[Problem, Field, Translator], Html]] = {
    "length": _length,
    "type": _type,
    "step": _step,
    "choice": _choice,
    "count": _count,
    "address": _address,
    "missing": _missing,
}


def _rule(rule: Rule, model: Model, values: Values, translator: Translator) -> Html:
    """Explain a broken rule between fields, with the names of the fields."""
    parts = _condition(rule, model, translator)
    given = {name for name, value in values.items() if value not in NOTHING}
    wanted = [name for name in rule.require if name not in given]
    unwanted = [name for name in rule.forbid if name in given]
    sides = [side for group in rule.apart if (side := [name for name in group if name in given])]

    def html(key: str, **more: object) -> Html:
        return translator.html(f"refused.{key}", **more)

    def names(*fields: str) -> str:
        return _names(fields, model, translator)

    any_of = translator.list([names(group) for group in rule.any_of], style="or")
    text = {
        rule.never: lambda: html("never", parts=parts),
        bool(rule.any_of): lambda: html("any_of", fields=any_of),
        bool(wanted): lambda: html("require", parts=parts, field=names(wanted[0])),
        bool(unwanted): lambda: html("forbid", parts=parts, field=names(unwanted[0])),
        bool(rule.most): lambda: html("most", field=names(*rule.most), limit=min(rule.most.values()), parts=parts),
        len(sides) > 1: lambda: html("apart", field=names(sides[1][0]), other=names(sides[0][0])),
    }
    return text.get(True, lambda: html("combination"))()


def _condition(rule: Rule, model: Model, translator: Translator) -> str:
    parts = []
    for name, allowed in rule.when.items():
        field = model.field(name)
        if field is not None:
            value = " / ".join(value_label(field, value, translator) for value in allowed)
            parts.append(translator.plain("refused.pair", field=field_label(field, translator), value=value))
    parts += [_names([name], model, translator) for name in rule.given]
    return " + ".join(parts)


def _names(names: Sequence[str], model: Model, translator: Translator) -> str:
    fields = [model.field(name) for name in names]
    return ", ".join(field_label(field, translator) for field in fields if field is not None)
