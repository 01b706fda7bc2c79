"""`make fuzz`: give each parser inputs for some minutes, guided by the lines they reach. Exits 1 at a failure."""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.fuzz.guided import Target, for_seconds, fuzz
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all parsers together (default: 10)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="by default the time")
    parser.add_argument("--only", choices=[target.name for target in TARGETS], help="one parser instead of all")
    options = parser.parse_args()
    chosen = [target for target in TARGETS if options.only in (None, target.name)]
    warnings.simplefilter("ignore")  # Pillow warns of damaged metadata
    failed = [target for target in chosen if not _passes(target, options.seed, options.minutes * 60 / len(chosen))]
    return 1 if failed else 0


def _passes(target: Target, seed: int, seconds: float) -> bool:
    corpus, tried, failure = fuzz(target, seed, for_seconds(seconds))
    sys.stdout.write(
        f"{target.name}: {tried:,} inputs, {len(corpus.inputs):,} kept, {len(corpus.steps):,} steps reached\n"
    )
    if failure is None:
        return True
    with tempfile.NamedTemporaryFile(prefix="genlock-fuzz-", delete=False) as file:
        Path(file.name).write_bytes(failure.content)
    sys.stdout.write(f"  failed with {failure.error!r}; seed {seed}, input: {file.name}\n")
    return False


if __name__ == "__main__":
    sys.exit(main())
