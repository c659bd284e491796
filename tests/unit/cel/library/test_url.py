"""URLs."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cel.library.url import BadUrl, is_url, parse, parse_request_uri


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:pass@example.com:80/a?b=c#d", "https://user:pass@example.com:80/a?b=c#d"),
        ("HTTP://EXAMPLE.com", "http://EXAMPLE.com"),
        ("/absolute", "/absolute"),
        ("mailto:a@b", "mailto:a@b"),
        ("http://h/with space", "http://h/with%20space"),
        ("http://h/a%2Fb", "http://h/a%2Fb"),
        ("http://h/ä", "http://h/%C3%A4"),
        ("http://h?", "http://h?"),
        ("http://[fe80::1%25en0]:8080/", "http://[fe80::1%25en0]:8080/"),
        ("file:///etc", "file:///etc"),
        ("x:/etc", "x:/etc"),
        ("*", "*"),
        ("http://h/#a b", "http://h/#a%20b"),
        ("http://h/#a%62", "http://h/#a%62"),
        ("//host/x", "//host/x"),
        ("a/b:c", "a/b:c"),
        ("http://h/%ff", "http://h/%ff"),
        ("", ""),
    ],
)
def test_a_url_prints_in_one_way(text: str, shown: str) -> None:
    assert str(parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty url"),
        ("../relative", "invalid URI for request"),
        (":x", "missing protocol scheme"),
        ("a\nb", "net/url: invalid control character in URL"),
        ("https://a:b:c/", 'invalid port ":b:c" after host'),
        ("x://a:1:2x", 'invalid port ":2x" after host'),
        ("http://h/%zz", 'invalid URL escape "%zz"'),
        ("http://h/%ä", r'invalid URL escape "%ä"'),
        ("http://h/%1ä", r'invalid URL escape "%1\xc3"'),
        ("http://h%41", 'invalid URL escape "%41"'),
        ("http://a b/", 'invalid character " " in host name'),
        ("http://[::1", "missing ']' in host"),
        ("http://x[::1]", "invalid IP-literal"),
        ("http://[1.2.3.4]/", "invalid IP-literal"),
        (
            "http://[zz::1]/",
            'invalid host: ParseAddr("zz::1"): each colon-separated field must have at least one digit (at "zz::1")',
        ),
        ("http://[::1]x", 'invalid port "x" after host'),
        ("http://[fe80::1%25%41%22%2f]/", 'invalid URL escape "%2f"'),
        ("http://u|@h", "net/url: invalid userinfo"),
        ("http://%zz@h", 'invalid URL escape "%zz"'),
    ],
)
def test_the_reason_is_the_one_of_the_reference(text: str, reason: str) -> None:
    with pytest.raises(BadUrl) as e:
        parse_request_uri(text)
    assert str(e.value).endswith(f": {reason}")
    assert not is_url(text)


def test_a_url_need_not_be_a_request_uri() -> None:
    for text in ("../relative", "a", "?x"):
        assert str(parse(text)) == text
    for text in ("1:b", "http://h/#%zz", "\x7f"):
        with pytest.raises(BadUrl):
            parse(text)


@given(st.text("aZ0:/?#[]@%&=+;. é~'|", max_size=24))
def test_what_is_accepted_prints_as_an_equal_url(tail: str) -> None:
    for start in ("", "/", "http://h/", "x://"):
        try:
            url = parse(start + tail)
        except BadUrl:
            continue
        assert parse(str(url)) == url and hash(parse(str(url))) == hash(url)


def test_a_url_has_parts(value: Callable[..., Any]) -> None:
    parts = "[u.getScheme(), u.getHost(), u.getHostname(), u.getPort(), u.getEscapedPath()]"
    assert value(f'cel.bind(u, url("https://[::1]:80/a b?c"), {parts})') == ["https", "[::1]:80", "::1", "80", "/a%20b"]
    assert value(f'cel.bind(u, url("/path"), {parts})') == ["", "", "", "", "/path"]


def test_a_query_has_a_list_for_each_key_and_leaves_out_what_it_cannot_read(value: Callable[..., Any]) -> None:
    query = value('url("http://h/?k1=a&k2=b+c&k2=%41&&bad=%zz&semi;=1&e").getQuery()')
    assert query == {"k1": ["a"], "k2": ["b c", "A"], "e": [""]}
    assert value('url("http://h/?%ff=1").getQuery()') == {"\ufffd": ["1"]}
    assert value("url(x).getQuery()", x="/?" + "&".join("a" * 10_001)) == {}


def test_urls_are_compared_by_their_text(value: Callable[..., Any], error: Callable[..., str]) -> None:
    assert value('url("http://h/a b") == url("http://h/a%20b") && url("/a") != url("/b")')
    assert error('dyn(url("/a")) == "/a"') == "no such overload"
    assert error('url("../a")').startswith('URL parse error during conversion from string: parse "../a": invalid URI')
