"""Random examples: the same ones at every run of the tests, and others only if they are asked for.

`make test` must not fail one day by what it has not tried the day before. `--first-seed N` tries examples that follow
from N, and twenty times as many: `make soak` does so every night.
"""

import hypothesis
import pytest

MARKER = "random: tries random examples; `--first-seed` gives it others, and more of them"
#: how many of Hypothesis's examples each property has by default, and how many times as many with `--first-seed`
EXAMPLES, FACTOR = 100, 20
#: cases of all fuzz tests together
FUZZ_CASES = 20_000
#: seconds that a test may take with that many examples
SECONDS_MAX = 3600
FIXTURES = {"first_seed", "fuzz_cases"}

# How fast the machine is today is nothing an example can fail by.
_ANY_SPEED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("same", _ANY_SPEED, derandomize=True)
# Where the variable CI is set, Hypothesis's own default would try the same examples here, too.
hypothesis.settings.register_profile(
    "others", _ANY_SPEED, max_examples=EXAMPLES * FACTOR, derandomize=False, database=None, print_blob=True
)
hypothesis.settings.load_profile("same")


def examples(count: int) -> int:
    """Return how many examples a property has that needs more or fewer than others."""
    return count * hypothesis.settings().max_examples // EXAMPLES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first-seed", type=int, default=0, metavar="N", help="try other random examples, and more")
    parser.addoption("--fuzz", type=int, default=0, metavar="N", help=f"cases of all fuzz tests together: {FUZZ_CASES}")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the examples before the tests are imported, because their decorators read the profile."""
    config.addinivalue_line("markers", MARKER)
    if config.option.first_seed:
        hypothesis.settings.load_profile("others")
        config.option.hypothesis_seed = str(config.option.first_seed)


def pytest_report_header(config: pytest.Config) -> str | None:
    return f"random examples: --first-seed {config.option.first_seed}" if config.option.first_seed else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False) or FIXTURES & {*_fixtures(item)}:
            item.add_marker("random")
        if config.option.first_seed and item.get_closest_marker("random"):
            item.add_marker(pytest.mark.timeout(SECONDS_MAX), append=False)


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.fixture(scope="session")
def first_seed(request: pytest.FixtureRequest) -> int:
    """Return what a test adds to its seeds."""
    return int(request.config.getoption("--first-seed"))


@pytest.fixture(scope="session")
def fuzz_cases(request: pytest.FixtureRequest, first_seed: int) -> int:
    """Return how many cases the fuzz tests make together."""
    return int(request.config.getoption("--fuzz")) or FUZZ_CASES * (FACTOR if first_seed else 1)
