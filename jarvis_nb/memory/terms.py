"""From text to what a full-text index can match: queries are data, and no character of one is syntax."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

MAX_TERMS = 64
"""Distinct terms of one query that are looked for; a pasted page has its first ones."""

STOPWORDS = frozenset(
    """
    a an and are as at be but by can could did do does for from had has have how i if in into is it its me my no not
    of on or our should so such tell that the their them then there these they this to was we were what when where
    which who why will with would you your
    """.split()  # noqa: SIM905 - eighty quotation marks would hide the words
)
"""English words that a question is made of: left out where anything else remains."""

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
_POSSESSIVE = re.compile(r"(?<=\w)['’ʼ]s\b", re.IGNORECASE)  # noqa: RUF001 - apostrophes people type


def searchable(text: str) -> str:
    """Return a text as the index sees it: Chinese, Japanese and Korean signs stand apart, as words of their own.

    These scripts have no spaces (or long compounds), so that a run of signs would be one word that no query finds.

    Example:
        >>> searchable("東京 map")
        ' 東  京  map'
    """
    if text.isascii():
        return text
    return _UNSPACED_RUN.sub(lambda match: "".join(f" {sign} " for sign in match.group()), text)


def folded_words(text: str, most_bytes: int) -> str:
    """Return the words of a text in lower case, without accents, one space apart: what PostgreSQL's index sees.

    Its own parser takes ``shipping.md`` for a host and ``a/b`` for a path, which no search for a part finds.

    Args:
        text: Any text.
        most_bytes: The result has no more bytes than this; a ``tsvector`` is limited to a megabyte.

    Example:
        >>> folded_words("Café shipping.md: 東京", 100)
        'cafe shipping md 東 京'
    """
    words = " ".join(match.group() for match in _WORD.finditer(searchable(folded(text[:most_bytes]))))
    return words.encode()[:most_bytes].decode(errors="ignore")


def folded(text: str) -> str:
    """Return a text in lower case and without accents.

    Example:
        >>> folded("Naïve CAFÉ")
        'naive cafe'
    """
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(sign for sign in parts if not unicodedata.combining(sign)))


def query_terms(query: str) -> list[tuple[str, ...]]:
    """Return the distinct terms of a query, each a phrase of one word or of two adjacent signs.

    Words are sequences of letters and digits; case, possessive ``'s``, punctuation and English function
    words count for nothing.

    Example:
        >>> query_terms("What does the user's C++ AND-code do?")
        [('user',), ('c',), ('code',)]
        >>> query_terms("東京都")
        [('東', '京'), ('京', '都')]
    """
    terms: dict[tuple[str, ...], None] = {}
    plain: dict[tuple[str, ...], None] = {}
    for match in _WORD.finditer(_POSSESSIVE.sub("", query)):
        word = match.group().casefold()
        if _UNSPACED_RUN.match(word) and len(word) > 1:
            terms.update(dict.fromkeys(pairwise(word)))
        elif word in STOPWORDS:
            plain[(word,)] = None
        else:
            terms[(word,)] = None
        if len(terms) >= MAX_TERMS:
            break
    return list(terms or plain)[:MAX_TERMS]
