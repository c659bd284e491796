"""What a DRA driver answers for one device of a claim, on its way from the driver's socket to file, pod and views."""

from msgspec import Struct

__all__ = ["PreparedDevice"]


class PreparedDevice(Struct, frozen=True):
    """Without requests it is for all of them. None and empty are different in the file, so they are different here."""

    pool: str
    device: str
    share: str | None = None
    requests: tuple[str, ...] | None = None
    cdi_devices: tuple[str, ...] | None = None
