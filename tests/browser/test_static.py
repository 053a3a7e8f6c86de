"""Static HTML in Chromium: light, dark, narrow, sanitized; contrast and axe: notebook.md 4, 8 and 15."""

import pytest
import samples
from lab import SHOTS, axe
from sanitizers import github

from jarvis_nb.display import bundle

# JupyterLab's own colours of text and page, and what code stands on.
THEMES = {
    "light": ("rgba(0,0,0,0.87)", "white", "#f5f5f5"),
    "dark": ("rgba(255,255,255,0.87)", "#111111", "#212121"),
}

CONTRAST = """() => {
  const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return [m[0], m[1], m[2], m.length > 3 ? m[3] : 1]; };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
  const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const worst = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, el = node.parentElement;
    if (!node.textContent.trim() || !el.checkVisibility() || el.closest('[disabled], script, style')) continue;
    const chain = []; for (let e = el; e; e = e.parentElement) chain.unshift(e);
    let back = [255, 255, 255], opacity = 1;
    for (const e of chain) { const s = getComputedStyle(e); back = over(parse(s.backgroundColor), back); opacity *= Number(s.opacity); }
    const c = parse(getComputedStyle(el).color); c[3] *= opacity;
    const a = light(over(c, back)), b = light(back);
    worst.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), node.textContent.slice(0, 60)]);
  }
  return worst.sort((x, y) => x[0] - y[0]).slice(0, 3);
}"""


def document(theme: str, parts: dict[str, str]) -> str:
    ink, paper, code = THEMES[theme]
    style = (
        f"body{{color:{ink};background:{paper};font:14px system-ui,sans-serif;margin:16px}}"
        f"code,pre{{background:{code};font-family:monospace}}"
    )
    inner = "".join(f"<section aria-label='{name}'>{html}</section>" for name, html in parts.items())
    return f"<!doctype html><html lang='en'><title>x</title><meta charset='utf-8'><style>{style}</style><main>{inner}</main>"


def pictures() -> dict[str, str]:
    return {
        name: bundle(make(), **({"times": True} if name.startswith("run card") else {}))["text/html"]
        for name, make in samples.ORDINARY.items()
    }


@pytest.mark.parametrize("theme", THEMES)
def test_08_contrast_and_axe(page, theme):
    """notebook.md 8: every view, folds open; contrast of at least 4.5, axe finds nothing."""
    page.set_content(document(theme, pictures()))
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for ratio, text in page.evaluate(CONTRAST):
        assert ratio >= 4.5, text
    found = axe(page, "main")
    assert found["bad"] == []
    assert found["passed"] > 5
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SHOTS / f"static-{theme}.png"), full_page=True)


@pytest.mark.parametrize("width", [1200, 380])
def test_04_nothing_is_wider_than_the_page(page, width):
    """notebook.md 4: wide tables scroll by themselves, on a phone too."""
    page.set_viewport_size({"width": width, "height": 800})
    page.set_content(document("light", pictures()))
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=str(SHOTS / f"static-{width}.png"), full_page=True)


def test_04_after_the_allow_list(page):
    """notebook.md 4: every style stripped, as on GitHub: the words are all there, and visible."""
    for name, html in pictures().items():
        page.set_content(html)
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        before = page.inner_text("body").split()
        page.set_content(github(html))
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.inner_text("body").split() == before, name


def test_05_hostile_text_runs_nothing(page):
    """notebook.md 5: in every view, also in the text form when it is put into a page by somebody careless."""
    alarms = []
    page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: alarms.append(request.url) if "http" in request.url else None)
    for make in samples.ODD.values():
        page.set_content(document("light", {"x": bundle(make(samples.NASTY))["text/html"]}))
        assert page.locator("img, script, iframe, a").count() == 0
    assert alarms == []
