"""What chaos reads from the simulators: whether an order began with the file of another order's result."""

from pathlib import Path

from genlock.sandbox.records import Order, Records
from tests.bot.world import running_bot, sqlite_url


async def test_a_file_is_a_result_by_its_address_or_its_bytes_even_if_nothing_ever_downloaded_it(
    tmp_path: Path,
) -> None:
    """The copy of a result that was uploaded for an order whose submit was lost is never downloaded."""
    async with running_bot(sqlite_url(tmp_path)) as world:
        ann = await world.add_user()
        asked = await ann.write("/gen z-image a red fox")
        await world.quiet()
        records, files = Records(world.telegram, world.kie), world.kie.service.files
        order = Order(user=ann.client, prompt="a red fox", message=asked.id, asked_at=0.0)
        [picture] = records.results(order)
        assert picture.file_id is not None
        shown = world.telegram.files.read(picture.file_id)
        [task] = records.tasks()["a red fox"]
        copy = files.add("kieai/1/genlock/copy.jpg", lambda: shown, seconds=60)
        other = files.add("kieai/1/genlock/other.jpg", lambda: b"another picture", seconds=60)

        assert records.is_genuine(picture, task)
        for urls in (task.results, [copy], [copy, *task.results]):
            assert records.is_result_of(order, list(urls)), urls
        for urls in ([], [other], [copy, other], [f"{files.url}/nowhere.jpg"], ["https://elsewhere.example/fox.png"]):
            assert not records.is_result_of(order, urls), urls
