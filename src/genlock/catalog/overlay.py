"""The operator's overlay: a file that hides, renames, frees or prices models without touching the package.

Tables [models."ID"] and [wishes.NAME] are the operator's. Tables [synced."ID"], below a mark, are written by
`genlock models sync --apply`; where both change the same thing, the operator's table wins.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from genlock.catalog.coverage import check_model
from genlock.catalog.offers import check_preference
from genlock.catalog.reader import check
from genlock.catalog.schema import ChangeTable, OverlayFile, SamplesTable, WishChangeTable
from genlock.domain.catalog import Model, Status
from genlock.domain.errors import InvalidCatalog
from genlock.domain.tariff import PriceRow, thousandths
from genlock.domain.wish import Wish

MARK = "# ---- Below this line `genlock models sync --apply` writes; the rest is yours. ----"


def apply(models: Mapping[str, Model], data: dict[str, Any], name: str) -> dict[str, Model]:
    """Return the models with the changes of the overlay. Raises InvalidCatalog."""
    overlay = check(OverlayFile, data, name)
    changed = dict(models)
    for layer, must_exist in ((overlay.synced, False), (overlay.models, True)):
        for model_id, change in layer.items():
            where = f"{name}: {model_id}"
            if model_id in changed:
                changed[model_id] = changed_model(changed[model_id], change, where)
            elif must_exist:
                raise InvalidCatalog(f"{where}: there is no such model; `genlock models ls --all` lists every model")
    return changed


def without_absent(data: dict[str, Any], absent: Collection[str], models: Mapping[str, Model]) -> dict[str, Any]:
    """Return the overlay's tables without the models and offers of providers that are not there.

    The ids of a plug-in's models begin with its name and a slash. An overlay that names them must not keep the service
    from starting when the plug-in is broken.
    """
    prefixes = tuple(f"{name}/" for name in absent)

    def is_absent(model_id: object) -> bool:
        return isinstance(model_id, str) and model_id not in models and model_id.startswith(prefixes)

    def kept(value: Any) -> Any:
        if isinstance(value, list):
            return [item for item in value if not is_absent(item) and item not in absent]
        if isinstance(value, dict):
            inner = {key: kept(item) for key, item in value.items() if not is_absent(key)}
            return {key: item for key, item in inner.items() if item != [] or value[key] == []}
        return value

    return {key: kept(table) for key, table in data.items()} if absent else data


def samples_of(data: dict[str, Any], name: str) -> SamplesTable:
    """Return the sample files that the overlay names. Raises InvalidCatalog."""
    return check(OverlayFile, data, name).samples


def apply_to_wishes(
    wishes: Sequence[Wish], data: dict[str, Any], name: str, models: Mapping[str, Model]
) -> tuple[Wish, ...]:
    """Return the entries of the menu with the changes of the overlay. Raises InvalidCatalog."""
    changes = check(OverlayFile, data, name).wishes
    known = [wish.name for wish in wishes]
    for wish_name, change in changes.items():
        where = f"{name}: wishes: {wish_name}"
        if wish_name not in known:
            raise InvalidCatalog(f"{where}: there is no such entry of the menu; there are {', '.join(known)}")
        for model_id in (popular for popular in change.popular or () if popular not in models):
            raise InvalidCatalog(f"{where}: there is no model {model_id!r}")
    return tuple(_changed_wish(wish, changes.get(wish.name)) for wish in wishes if not _is_hidden(wish, changes))


def _is_hidden(wish: Wish, changes: Mapping[str, WishChangeTable]) -> bool:
    return wish.name in changes and changes[wish.name].hidden


def _changed_wish(wish: Wish, change: WishChangeTable | None) -> Wish:
    if change is None or change.popular is None:
        return wish
    return replace(wish, popular=tuple(change.popular))


def changed_model(model: Model, change: ChangeTable, where: str) -> Model:
    """Return a model with the changes of its table. Raises InvalidCatalog."""
    status = change.status or (Status.HIDDEN if change.hidden else model.status)
    reason = change.reason or ("hidden by the operator" if change.hidden else "")
    prices, extras = _repriced(model, change, where)
    changed = replace(
        model,
        title=model.title if change.title is None else change.title,
        status=status,
        reason=reason or (model.reason if status is model.status else "set by the operator"),
        free=model.free if change.free is None else change.free,
        own_price=model.own_price if change.price is None else thousandths(change.price),
        prices=prices,
        extras=extras,
        expected_seconds=_or(change.expected_seconds, model.expected_seconds),
        deadline_seconds=_or(change.deadline_seconds, model.deadline_seconds),
        order=model.order if change.order is None else change.order,
        featured=model.featured if change.featured is None else change.featured,
        good_at=model.good_at if change.good_at is None else change.good_at,
        preference=model.preference if change.offers is None else change.offers,
    )
    check_preference(changed, changed.preference, where)
    check_model(changed, where)
    return changed


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _repriced(model: Model, change: ChangeTable, where: str) -> tuple[tuple[PriceRow, ...], tuple[PriceRow, ...]]:
    """Return the price rows with new credits. A row is named by its key, as `genlock models show` prints it."""
    keys = list(dict.fromkeys(row.key for row in (*model.prices, *model.extras)))
    for key in change.credits:
        if key not in keys:
            known = "; ".join(keys) or "no rows"
            raise InvalidCatalog(
                f"{where}: credits: there is no price row {key!r}; this model has: {known}", key="credits"
            )

    def priced(row: PriceRow) -> PriceRow:
        return replace(row, credits=change.credits[row.key]) if row.key in change.credits else row

    return tuple(map(priced, model.prices)), tuple(map(priced, model.extras))


def written(path: Path, synced: Mapping[str, Mapping[str, object]]) -> str:
    """Return the overlay's text with these tables below the mark and the operator's text unchanged above it."""
    own = path.read_text(encoding="utf-8").partition(MARK)[0].rstrip() if path.exists() else ""
    tables = "\n\n".join(_table(model_id, change) for model_id, change in sorted(synced.items()))
    return f"{own}\n\n{MARK}\n\n{tables}".strip() + "\n"


def write(path: Path, text: str) -> None:
    """Replace the file in one step, so that no reader sees half of it."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise InvalidCatalog(f"{path}: cannot be written: {error.strerror}") from error


def _table(model_id: str, change: Mapping[str, object]) -> str:
    lines = [f"[synced.{_quoted(model_id)}]"]
    for key, value in change.items():
        if isinstance(value, Mapping):
            rows = ", ".join(f"{_quoted(str(label))} = {credits_}" for label, credits_ in value.items())
            lines.append(f"{key} = {{ {rows} }}")
        elif isinstance(value, list):
            lines.append(f"{key} = [{', '.join(_quoted(str(item)) for item in value)}]")
        else:
            lines.append(f"{key} = {_quoted(str(value))}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return a basic TOML string. JSON quotes the characters that occur here in the same way."""
    return json.dumps(text, ensure_ascii=False)
