"""The channels of this package hold to what the engine relies on."""

from contextlib import AbstractAsyncContextManager

from genlock.testing import ChannelConformance, ChannelSubject
from tests.conformance.simulated_channels import running_api_subject, running_telegram_subject


class TestTelegram(ChannelConformance):
    def running(self) -> AbstractAsyncContextManager[ChannelSubject]:
        return running_telegram_subject()


class TestApi(ChannelConformance):
    def running(self) -> AbstractAsyncContextManager[ChannelSubject]:
        return running_api_subject()
