"""Pages call a provider by the name that operators know it by."""

from tests.dashboard.test_attention_page import unreadable
from tests.dashboard.world import DashboardWorld
from tests.stores.builders import running


async def test_pages_show_the_title_of_a_provider_and_filter_by_its_name(dashboard: DashboardWorld) -> None:
    job = await running(dashboard.store, provider="kie", model="z-image")
    gone = await running(dashboard.store, provider="gone", model="z-image")
    await unreadable(dashboard.store)
    await dashboard.store.count_failure("kie", "", 1, "provider_failed")
    client = await dashboard.log_in()

    jobs = (await client.get("/jobs")).text
    assert '<option value="kie" >Kie.ai</option>' in jobs
    assert '<option value="gone" >gone</option>' in jobs
    for path in (f"/jobs/{job.id}", "/attention", "/system", "/models/z-image"):
        text = (await client.get(path)).text
        assert "Kie.ai" in text, path
    assert "gone" in (await client.get(f"/jobs/{gone.id}")).text


async def test_a_list_that_cannot_be_read_is_named_by_the_title_of_its_provider(dashboard: DashboardWorld) -> None:
    text = (await (await dashboard.log_in()).post("/models/provider/read")).text
    assert "Kie.ai: http://127.0.0.1:9/" in text
