"""Sphinx: pages in MyST, the tutorials as they are stored, the reference from docstrings."""

from __future__ import annotations

import shutil
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

from jarvis_nb import __version__

HERE = Path(__file__).resolve().parent

project = "jarvis_nb"
author = "The jarvis_nb authors"
copyright = "The jarvis_nb authors, Apache-2.0"  # noqa: A001 - Sphinx's name
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "lessons/data", "lessons/recordings"]
html_theme = "furo"
html_title = "jarvis_nb"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"source_repository": "https://github.com/jarvis-nb/jarvis_nb/", "source_branch": "main"}

# What is stored in the notebooks is shown: a test has run them and compared.
nb_execution_mode = "off"
nb_code_prompt_show = "Show one solution"  # only solutions are folded
nb_code_prompt_hide = "Hide the solution"
suppress_warnings = [
    "mystnb.unknown_mime_type",  # flows also offer Mermaid, to front ends that draw it; the HTML is shown
    "ref.python",  # type aliases of one name in two modules
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def take_lessons() -> None:
    """Copy the notebooks to where Sphinx reads its pages; they are not kept there."""
    lessons = HERE / "lessons"
    shutil.rmtree(lessons, ignore_errors=True)
    lessons.mkdir()
    for notebook in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        shutil.copy(notebook, lessons)


take_lessons()


def read_google(  # noqa: PLR0917 - what Sphinx calls it with
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Read Google style, but leave a text below an attribute as it is: a colon in it names no type."""
    if what not in ("attribute", "data"):
        lines[:] = GoogleDocstring(lines, Config(), app, what, name, obj, options).lines()


def setup(app: Sphinx) -> None:
    """Connect the reading of docstrings."""
    app.connect("autodoc-process-docstring", read_google)
