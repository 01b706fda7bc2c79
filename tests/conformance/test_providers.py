"""The adapters of this package hold to what the engine relies on."""

from contextlib import AbstractAsyncContextManager

from genlock.testing import ProviderConformance, ProviderSubject
from tests.conformance.simulated_providers import running_fal_subject, running_kie_subject, running_replicate_subject


class TestKie(ProviderConformance):
    def running(self) -> AbstractAsyncContextManager[ProviderSubject]:
        return running_kie_subject()


class TestFal(ProviderConformance):
    def running(self) -> AbstractAsyncContextManager[ProviderSubject]:
        return running_fal_subject()


class TestReplicate(ProviderConformance):
    def running(self) -> AbstractAsyncContextManager[ProviderSubject]:
        return running_replicate_subject()
