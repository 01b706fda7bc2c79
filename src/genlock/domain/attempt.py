"""Attempts: each try to have a job made by one provider, and when another provider may be tried."""

#: Error codes after which another provider may make the order: this one provably did not accept it, or failed by its
#: own fault. What the user must change (the prompt, a file, a value) fails elsewhere, too, and is not tried again.
ELSEWHERE = frozenset(
    {"no_provider_credits", "provider_key", "model_unavailable", "provider_failed", "provider_timeout"}
)
