"""What front ends and sites leave of an output's HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

# notebook.md 4, and what is neutral everywhere: div, span, br, caption, tr and the tbody a parser puts in.
ALLOWED = frozenset(
    re.findall(
        r"\w+",
        "p b i code pre details summary table caption tbody th td tr ul li meter progress mark div span br",
    )
)
# The elements of github/html-pipeline's allow-list; `style` is not among its attributes.
GITHUB = frozenset(
    re.findall(
        r"\w+",
        "h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p picture ol ul table thead tbody "
        "tfoot blockquote dl dt dd kbd q samp var hr ruby rt rp li tr td th s strike summary details caption figure "
        "figcaption abbr bdo cite dfn mark small source span time wbr",
    )
)

STYLE = re.compile(r"[a-z-]+:[\w\s.,()%-]+(;[a-z-]+:[\w\s.,()%-]+)*;?")


class Strict(HTMLParser):
    """Fails on whatever a sanitizer would drop, on what is not closed, and collects the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        self.math = ""
        """Text outside of code, pre and the elements that keep formulas apart."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        for name, value in attrs:
            assert name in {"style", "scope", "open"}, name
            if name == "style":
                assert STYLE.fullmatch(value or ""), value
                assert not re.search(r"url|var\(|expression|position|(?<!-)color:(?!rgba)", value or ""), (
                    value
                )
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if not {"code", "pre", "span"} & set(self.open):
            self.math += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def strict(html: str) -> Strict:
    """Parse and check."""
    parser = Strict()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def github(html: str) -> str:
    """Return what GitHub leaves of it."""
    import nh3

    return nh3.clean(html, tags=set(GITHUB), attributes={"details": {"open"}, "th": {"scope"}}, link_rel=None)
