"""Rules for device configuration: `opaque` parameters for one driver.

Parameters are a JSON object that only the driver understands. Its size is that of the compact form, without the
whitespace that a client sent.
"""

import msgspec

from devlet.objects import names
from devlet.objects.documents import Document
from devlet.objects.validation.field_errors import Causes, invalid_omitted, required, required_name, too_long

PARAMETERS_MAX = 10 * 1024


def check(config: Document, path: str, stored: bool = False) -> Causes:
    """Check a configuration. `stored` parameters were accepted earlier and may have any size."""
    opaque = config.get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from required_name(f"{path}.opaque.driver", opaque.get("driver", ""), names.driver_name)
    yield from check_raw(opaque.get("parameters"), f"{path}.opaque.parameters", stored)


def check_raw(value: object, path: str, stored: bool = False) -> Causes:
    """Check that the value is a JSON object of limited size."""
    if value is None:
        yield required(path)
    elif not stored and len(msgspec.json.encode(value)) > PARAMETERS_MAX:
        yield too_long(path, PARAMETERS_MAX)
    elif not isinstance(value, dict):
        yield invalid_omitted(path, "must be a valid JSON object")
