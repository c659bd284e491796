"""Check names from requests before they become parts of file names and CDI names.

UIDs, requests and drivers come from other programs: one with a slash would leave its directory. An underscore separates
the parts, so none of them may have one.
"""

import re
from typing import Final

from devlet.errors import InvalidInput
from devlet.objects import names
from devlet.runtime.cdi.names import vendor_problem

__all__ = ["UID", "check_driver", "check_uid", "main_request", "vendor"]

UID: Final = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,126}[A-Za-z0-9])?"
MAX_DRIVER = 63

_uid = re.compile(UID)
_DIGIT_PREFIX = "cdi_"  # names of drivers have no underscore, so no other driver has this vendor


def check_uid(uid: str) -> str:
    if not _uid.fullmatch(uid):
        raise InvalidInput(
            f"{uid[:200]!r} is not a claim's UID: it has letters, digits, '-' and '.', at most 128 of them"
        )
    return uid


def check_driver(driver: str) -> str:
    problems = [*names.dns_subdomain(driver)]
    if len(driver) > MAX_DRIVER:
        problems.append(f"must be no more than {MAX_DRIVER} characters")
    if problems:
        raise InvalidInput(f"{driver[:300]!r} cannot be a driver's name: {'; '.join(problems)}")
    return driver


def main_request(request: str) -> str:
    """Return the first part of `request/subrequest`. Raise InvalidInput if a part is not a valid name."""
    main, *rest = request.split("/")
    problems = names.dns_label(main) or (names.dns_label(rest[0]) if rest else ())
    if problems or len(rest) > 1:
        reason = problems[0] if problems else "it has too many parts"
        raise InvalidInput(f"{request[:200]!r} is not the name of a request: {reason}")
    return main


def vendor(driver: str) -> str:
    """Return the CDI vendor of a driver: its own name, unless that starts with a digit, which vendors may not."""
    check_driver(driver)
    return driver if vendor_problem(driver) is None else f"{_DIGIT_PREFIX}{driver}"
