"""Skills: directories with a ``SKILL.md``, discovered as data and served to a model as one tool."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from itertools import islice, pairwise
from pathlib import Path
from stat import S_ISDIR
from typing import Any, ClassVar

from jarvis_nb.core.errors import SkillError, ToolError
from jarvis_nb.core.pictured import Pictured
from jarvis_nb.core.types import dumps
from jarvis_nb.tools.base import ToolContext
from jarvis_nb.toolsets.frontmatter import Refused
from jarvis_nb.toolsets.skill_file import FILE_NAME, Skill, SkillProblem, read_skill
from jarvis_nb.toolsets.tool_source import ToolSource

MAX_SKILLS = 2_000
MAX_ENTRIES = 20_000
"""Entries of one root, stray files included."""
SHOWN = 20
"""Names in a repr."""

log = logging.getLogger("jarvis_nb.skills")

Roots = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Skills(Pictured, list[Skill]):
    r"""The skills found under some roots, sorted by name, and the problems of the others.

    Example:
        >>> import tempfile
        >>> root = Path(tempfile.mkdtemp())
        >>> (root / "greet").mkdir()
        >>> text = "---\nname: greet\ndescription: Say hello.\n---\nSay hello.\n"
        >>> _ = (root / "greet" / "SKILL.md").write_text(text)
        >>> skills = Skills.discover([root])
        >>> [(skill.name, skill.description) for skill in skills], skills.problems
        ([('greet', 'Say hello.')], [])
    """

    def __init__(self, found: Iterable[Skill] = (), problems: Iterable[SkillProblem] = ()) -> None:
        super().__init__(found)
        self.problems = list(problems)
        """Why the others are not offered."""

    @property
    def warnings(self) -> list[SkillProblem]:
        """What the authors of skills that are offered should look at."""
        return [warning for skill in self for warning in skill.warnings]

    @classmethod
    def discover(cls, roots: Roots, *, strict: bool = False, allow_symlinks: bool = False) -> Skills:
        """Look for skills one level below each root.

        Args:
            roots: Directories that hold one directory a skill; one real directory counts once.
            strict: Raise if any skill has a problem.
            allow_symlinks: Follow directories that are links, also out of the root. Files never are.

        Raises:
            SkillError: ``unknown_root``: a root is no directory. ``duplicate_skill``: two skills of one name;
                the message names both. ``too_many_skills``. With ``strict``: the code of the first problem.
        """
        found: list[Skill] = []
        problems: list[SkillProblem] = []
        for root in _real_roots(roots):
            for entry in _entries(root):
                try:
                    directory = _directory(entry, allow_symlinks=allow_symlinks)
                    skill, _ = read_skill(directory, Path(entry).name)
                    found.append(skill)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # a directory of something else, or gone meanwhile
                except (Refused, OSError) as error:
                    problems.append(_problem(entry, error))
                if len(found) + len(problems) > MAX_SKILLS:
                    raise SkillError(f"more than {MAX_SKILLS:,} skills", code="too_many_skills", value=root)
        found.sort(key=lambda skill: skill.name)
        _check_distinct(found)
        if strict and problems:
            raise _all(problems)
        return cls(found, problems)

    @staticmethod
    def source(roots: Roots, *, allow_symlinks: bool = False) -> SkillRoots:
        """Return what to put into ``tool_sources``: one tool, ``load_skill``, that serves these roots.

        Raises:
            SkillError: ``unknown_root``.
        """
        return SkillRoots((SkillSource, {"roots": _real_roots(roots), "allow_symlinks": allow_symlinks}))

    def __repr__(self) -> str:
        names = ", ".join(skill.name for skill in self[:SHOWN])
        more = f", {len(self) - SHOWN:,} more" if len(self) > SHOWN else ""
        problems = (
            f"; {len(self.problems):,} problem{'' if len(self.problems) == 1 else 's'}"
            if self.problems
            else ""
        )
        return f"Skills({names or 'none'}{more}{problems})"


class SkillSource(ToolSource):
    """Serves the skills of some roots through one tool. Made by :meth:`Skills.source`."""

    uncapped: ClassVar[bool] = True
    # The list of skills is bounded where it is discovered; both are larger than what is taken from outside.
    max_description: ClassVar[int] = 8_388_608
    check_schemas: ClassVar[bool] = False

    def __init__(self) -> None:
        self._listed: dict[str, str] = {}
        self._problems: list[SkillProblem] = []

    def list_tools(self, config: Any, context: ToolContext) -> list[dict[str, Any]]:  # noqa: ARG002 - the interface
        """Discover the skills now and return ``load_skill``, or nothing where there is no good skill."""
        skills = Skills.discover(config["roots"], allow_symlinks=config["allow_symlinks"])
        if skills.problems != self._problems:
            for problem in skills.problems:
                log.warning("skill not offered: %s", problem)
        self._problems = skills.problems
        self._listed = {skill.name: str(Path(skill.path).parent) for skill in skills}
        if not skills:
            return []
        lines = [dumps({"name": skill.name, "description": skill.description}) for skill in skills]
        return [
            {
                "name": "load_skill",
                "description": "Load the instructions of one skill by its name. The skills, one a line:\n"
                + "\n".join(lines),
                "parameter_schema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "enum": [skill.name for skill in skills]}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            }
        ]

    def run_tool(
        self,
        name: str,  # noqa: ARG002 - the one tool there is
        arguments: dict[str, Any],
        config: Any,
        context: ToolContext,
    ) -> dict[str, str]:
        """Read one listed skill again and return its instructions, whole.

        Raises:
            ToolError: ``unknown_skill`` with the valid names; ``skill_unavailable``: it is gone or not valid
                any more.
        """
        if not self._listed:
            self.list_tools(config, context)
        wanted = arguments["name"]
        directory = self._listed.get(wanted)
        if directory is None:
            raise ToolError(f"no skill is called {wanted!r:.100}", code="unknown_skill", valid=self._listed)
        try:
            _, instructions = read_skill(
                _directory(directory, allow_symlinks=config["allow_symlinks"]), wanted
            )
        except (Refused, OSError) as error:
            reason = error.message if isinstance(error, Refused) else (error.strerror or "its file is gone")
            raise ToolError(
                f"the skill {wanted!r} is not available any more: {reason}", code="skill_unavailable"
            ) from None
        return {"instructions": instructions}


class SkillRoots(Pictured, tuple[type[SkillSource], dict[str, Any]]):
    """``(SkillSource, config)``, as ``tool_sources`` takes it. Made by :meth:`Skills.source`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Skills.source({[Path(root).name for root in self[1]['roots']]})"


def _real_roots(roots: Any) -> list[str]:
    given = (
        [roots] if isinstance(roots, str | os.PathLike) or not isinstance(roots, Iterable) else list(roots)
    )
    found: dict[str, None] = {}
    for root in given:
        try:
            real = os.path.realpath(os.fspath(root), strict=True)
            good = isinstance(real, str) and os.path.isdir(real)  # noqa: PTH112 - text, for a portable config
        except (OSError, TypeError, ValueError):
            real, good = "", False
        if not good:
            raise SkillError(
                f"the root {str(root)!r} is no directory",
                code="unknown_root",
                value=root,
                hint="a root holds one directory a skill",
            )
        found[real] = None
    return list(found)


def _entries(root: str) -> list[str]:
    """Return the paths of what may be skills in one root, sorted: its directories and links."""
    try:
        with os.scandir(root) as entries:
            some = list(islice(entries, MAX_ENTRIES + 1))
    except OSError as error:
        raise SkillError(
            f"the root {root!r} cannot be read: {error.strerror}", code="unknown_root", value=root
        ) from None
    if len(some) > MAX_ENTRIES:
        raise SkillError(
            f"the root {root!r} has more than {MAX_ENTRIES:,} entries", code="too_many_skills", value=root
        )
    return sorted(entry.path for entry in some if _may_be_skill(entry))


def _may_be_skill(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name == "node_modules":
        return False
    return entry.is_symlink() or entry.is_dir(follow_symlinks=False)


def _directory(path: str, *, allow_symlinks: bool) -> str:
    """Return the real directory behind an entry of a root.

    Raises:
        Refused: It is a link, and links are not allowed, or it leads nowhere.
        NotADirectoryError: It is a link to something else.
    """
    if not os.path.islink(path):  # noqa: PTH114 - strings all the way, 2,000 times
        return path
    try:
        leads_to = os.stat(path)  # noqa: PTH116 - looks, opens nothing
        real = os.path.realpath(path, strict=True)
    except OSError as error:
        raise Refused("symlink", f"the link leads nowhere: {error.strerror}", "remove it") from None
    if not S_ISDIR(leads_to.st_mode):
        raise NotADirectoryError(path)
    if not allow_symlinks:
        raise Refused("symlink", "the directory is a link", "allow_symlinks=True follows it")
    return real


def _problem(entry: str, error: Refused | OSError) -> SkillProblem:
    path = os.fsencode(Path(entry) / FILE_NAME).decode(errors="replace")
    if isinstance(error, Refused):
        return SkillProblem(path, error.code, error.message, error.hint, error.line, error.column)
    return SkillProblem(path, "unreadable", f"it cannot be read: {error.strerror}", "check its permissions")


def _check_distinct(skills: list[Skill]) -> None:
    for first, second in pairwise(skills):
        if first.name == second.name:
            raise SkillError(
                f"two skills are called {first.name!r}: {first.path} and {second.path}",
                code="duplicate_skill",
                value=first.name,
                hint="rename one, or leave its root out",
            )


def _all(problems: list[SkillProblem]) -> SkillError:
    shown = "\n".join(f"  {problem}" for problem in problems[:10])
    more = f"\n  … {len(problems) - 10:,} more" if len(problems) > 10 else ""  # noqa: PLR2004 - what fits on a screen
    return SkillError(f"not every skill is valid:\n{shown}{more}", code=problems[0].code, value=problems)
