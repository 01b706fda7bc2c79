"""`python -m genlock.i18n.check` names every text that is missing or does not fit, in every language."""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter

from genlock.i18n.loader import DEFAULT, Forms, InvalidLanguage, Language
from genlock.i18n.translator import Texts

#: the tags of Telegram HTML that texts use
TAGS = {"b", "i", "code"}
#: texts that buttons, toasts and command lists show as they are
PLAIN = ("button.", "unit.", "choice.", "command.", "profile.", "try.", "category.", "title.", "member.", "alarm.")
#: names of inputs: English and Russian have theirs in the catalog
OPTIONAL = "field."
_KEY_IN_TEMPLATE = re.compile(r"""\bt\(\s*["'](dashboard\.[\w.-]*\w)["'][),]""")
_KEY_IN_CODE = re.compile(r"""\.(?:html|plain)\(\s*"([a-z]+\.[\w.-]+)\"""")


def find_problems(texts: Texts, source: Path | None = None) -> list[str]:
    """One line for each problem; empty if every language is complete."""
    english = texts.languages[DEFAULT]
    found = [f"{DEFAULT}: {key} is used in the code and has no text" for key in _unknown_keys(english, source)]
    for language in texts.languages.values():
        found += [f"{language.code}: {key} is missing" for key in english.texts if key not in language.texts]
        found += [f"{language.code}: {key}: {problem}" for key, problem in _problems(language, english)]
    return found


def _unknown_keys(english: Language, source: Path | None) -> list[str]:
    """Keys that the code names and English lacks; keys that the code composes cannot be seen here."""
    named = _named_in(source) if source else _named_in_package()
    return sorted(named - english.texts.keys())


@cache
def _named_in_package() -> frozenset[str]:
    """Return the keys that our own code names, which does not change while it runs."""
    return _named_in(Path(__file__).parents[1])


def _named_in(folder: Path) -> frozenset[str]:
    code = (path.read_text(encoding="utf-8") for kind in ("*.py", "*.html") for path in folder.rglob(kind))
    return frozenset(key for text in code for key in (*_KEY_IN_CODE.findall(text), *_KEY_IN_TEMPLATE.findall(text)))


def _problems(language: Language, english: Language) -> Iterator[tuple[str, str]]:
    plural_forms = set(language.locale.plural_form.tags) | {"other"}
    for key, text in language.texts.items():
        if key.startswith(OPTIONAL):
            continue
        if key not in english.texts:
            yield key, "English has no such text"
            continue
        names = _names(next(iter(_forms(english.texts[key]).values())))
        if isinstance(text, Mapping) and (missing := plural_forms - text.keys()):
            yield key, f"the plural forms {', '.join(sorted(missing))} are missing"
        for form in _forms(text).values():
            try:
                given = _names(form)
            except ValueError as error:
                yield key, f"cannot be read ({error}): {form}"
                continue
            if given != names:
                yield key, f"must have the names {sorted(names)} in braces, has {sorted(given)}"
            if not _is_whole_html(form, plain=key.startswith(PLAIN)):
                yield key, f"has tags that do not fit: {form}"


def _forms(text: Forms) -> Mapping[str, str]:
    return {"": text} if isinstance(text, str) else text


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def _is_whole_html(text: str, *, plain: bool) -> bool:
    opened = re.findall(r"<(\w+)>", text)
    closed = re.findall(r"</(\w+)>", text)
    return sorted(opened) == sorted(closed) and set(opened) <= (set() if plain else TAGS)


def main(folders: list[str]) -> int:
    try:
        texts = Texts.load(*map(Path, folders))
    except InvalidLanguage as error:
        sys.stderr.write(f"{error}\n")
        return 1
    problems = find_problems(texts)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    names = ", ".join(f"{language.name} ({len(language.texts)})" for language in texts.languages.values())
    sys.stdout.write(f"Texts: {names}; problems: {len(problems)}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
