"""What an unknown command means: another word for a command, in any language, or one with a typo."""

import re
from collections.abc import Iterable, Mapping

from genlock.bot.handlers.incoming import IncomingText
from genlock.bot.screen_context import shorten
from genlock.bot.storefront.spelling import closest, in_other_layout, is_cyrillic, plain, sound
from genlock.i18n.translator import Html, Texts, Translator

#: the command that has no name of its own: its words begin a wish, as in other bots
WISH = "wish"
#: Telegram's own limit of a command
COMMAND_LENGTH = 32
#: a beginning of a command is understood from this length on
BEGINNING_LENGTH = 3
#: Telegram marks commands in Latin letters only, so other alphabets are read from the text
_TYPED = re.compile(rf"/([^\W\d_]{{2,{COMMAND_LENGTH}}})(?:\s+(.*))?", re.DOTALL)


class CommandWords:
    def __init__(self, texts: Texts, commands: Iterable[str]) -> None:
        self._commands: dict[str, str] = {}
        for code in texts.languages:
            t = texts.translator(code)
            for name in commands:
                key = f"command_words.{name}"
                for word in t.plain(key).split() if key in t else ():
                    self._commands.setdefault(word, name)
        self._commands |= {name: name for name in commands}
        self._sounds: Mapping[str, str] = {sound(word): name for word, name in self._commands.items()}

    def meaning(self, word: str) -> str | None:
        """Return the command that a word is another name of."""
        return self._commands.get(plain(word))

    def nearest(self, word: str) -> str | None:
        """Return the command that was probably meant: in the other keyboard layout, cut short, or with a typo."""
        typed = plain(word)[:COMMAND_LENGTH]
        if found := self._commands.get(in_other_layout(typed)):
            return found
        begun = {name for known, name in self._commands.items() if known.startswith(typed)}
        if len(typed) >= BEGINNING_LENGTH and len(begun) == 1:
            return begun.pop()
        if near := closest(typed, self._commands):
            return self._commands[near]
        spoken = sound(typed)
        near = spoken if spoken in self._sounds else closest(spoken, self._sounds)
        return self._sounds[near] if near else None

    def read(self, incoming: IncomingText) -> IncomingText:
        """Return a text as a command, if it is one in letters that Telegram does not mark, such as `/галерея`."""
        typed = None if incoming.command or incoming.borrowed_command else _TYPED.fullmatch(incoming.text)
        if typed is None or not is_cyrillic(plain(typed[1])):
            return incoming
        if self.meaning(typed[1]) is None and self.nearest(typed[1]) is None:
            return incoming
        return IncomingText(command=typed[1].lower(), text=(typed[2] or "").strip())


def guess(t: Translator, typed: str, command: str) -> Html:
    """Return the text that suggests a command instead of one that does not exist."""
    command = "start" if command == WISH else command
    about, values = f"command.{command}", {"typed": shorten(typed, COMMAND_LENGTH), "command": command}
    if about not in t:
        return t.html("command_guess.text", **values)
    return t.html("command_guess.text_about", **values, about=t.plain(about))
