"""Conformance suites: what the engine relies on, as tests that a plug-in runs against its own provider or channel.

    from genlock.testing import ProviderConformance, ProviderSubject

    class TestAcme(ProviderConformance):
        @asynccontextmanager
        async def running(self):
            async with acme_simulator() as simulator:
                yield AcmeSubject(simulator)

The tests need pytest and nothing else: each runs an event loop of its own. A skipped test names what the subject
cannot show.
"""

from genlock.testing.channel import ChannelConformance
from genlock.testing.channel_subject import ChannelSituation, ChannelSubject, Shown
from genlock.testing.jobs import make_job, make_order
from genlock.testing.provider import ProviderConformance
from genlock.testing.provider_callbacks import ProviderCallbackConformance
from genlock.testing.provider_subject import ProviderSubject, SentCallback, Situation
from genlock.testing.running import NotShown

__all__ = [
    "ChannelConformance",
    "ChannelSituation",
    "ChannelSubject",
    "NotShown",
    "ProviderCallbackConformance",
    "ProviderConformance",
    "ProviderSubject",
    "SentCallback",
    "Shown",
    "Situation",
    "make_job",
    "make_order",
]
