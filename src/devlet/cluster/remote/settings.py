"""All settings of the client."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    connect_timeout: float = 10.0
    answer_timeout: float = 60.0  # without a single byte of an answer
    silence: float = 180.0  # a watch without a byte; servers send a bookmark every minute
    retries: int = 5  # after "not now, come back in N seconds" …
    longest_wait: float = 30.0  # … unless N is more than this
    qps: float = 50.0  # requests per second on average; 0: no limit
    burst: int = 100
    max_answer_bytes: int = 1 << 30
    max_event_bytes: int = 16 << 20
    reread_credentials: float = 60.0  # files with tokens and certificates may be replaced at any time
    exec_timeout: float = 60.0  # for a credential plugin
    user_agent: str = "devlet"  # servers use it as the default field manager
