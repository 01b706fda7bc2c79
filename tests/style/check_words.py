"""Fail on words that this project no longer uses, and say which to use: `python -m tests.style.check_words`."""

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("words.toml")
FOLDERS = ("src", "tests", "docs", "examples", "deploy")
ENDINGS = {".py", ".sql", ".md", ".js", ".toml", ".html", ".css", ".yml", ".yaml", ".service"}
#: files in the root of the repository
ROOT_FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "Dockerfile", "compose.yaml", ".env.example")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class Exemption:
    word: re.Pattern[str]
    path: re.Pattern[str]
    line: re.Pattern[str]

    def covers(self, word: str, path: str, line: str) -> bool:
        return bool(self.word.fullmatch(word) and self.path.fullmatch(path) and self.line.search(line))


@dataclass(frozen=True, kw_only=True)
class WordList:
    words: tuple[tuple[re.Pattern[str], str], ...]
    #: any of the words: few lines have one, and this finds them in a twentieth of the time
    any_word: re.Pattern[str]
    allowed: tuple[Exemption, ...]

    @classmethod
    def load(cls, path: Path = LIST) -> "WordList":
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return cls(
            words=tuple((_whole_word(word), instead) for word, instead in table["words"].items()),
            any_word=_whole_word("|".join(table["words"])),
            allowed=tuple(
                Exemption(**{key: re.compile(entry[key]) for key in ("word", "path", "line")})
                for entry in table["allowed"]
            ),
        )

    def problems(self, path: str, text: str) -> Iterator[str]:
        """Yield `PATH:LINE: WORD: write … instead` for every word that is not allowed there."""
        for number, line in enumerate(text.splitlines(), 1):
            plain = _CAMEL.sub(" ", line).replace("_", " ").lower()
            if not self.any_word.search(plain):
                continue
            for pattern, instead in self.words:
                for match in pattern.finditer(plain):
                    if not any(exception.covers(match[0], path, line) for exception in self.allowed):
                        yield f"{path}:{number}: {match[0]!r}: write instead: {instead}"


def _whole_word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{word})(?![a-z])")


def check(root: Path) -> list[str]:
    words = WordList.load()
    return [
        problem
        for path in _files(root)
        for problem in words.problems(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    ]


def _files(root: Path) -> Iterator[Path]:
    yield from (root / name for name in ROOT_FILES)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in ENDINGS and "__pycache__" not in path.parts:
                yield path


if __name__ == "__main__":
    sys.exit("\n".join(check(Path())) or 0)
