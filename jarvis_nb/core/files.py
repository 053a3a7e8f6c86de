"""Reading files whose names come from a model or a directory walk: no secrets, no devices, no swapped links."""

from __future__ import annotations

import errno
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path

from jarvis_nb.core.errors import JarvisError

SECRET_FOLDERS = frozenset(
    {".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", ".ssh", "gcloud"}
)
"""Folders whose files are refused whole."""

SECRET_FILES = (
    ".env*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdb", "*.kdbx", "*.gpg",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_ed25519", "credentials*", ".credentials*",
    ".netrc", "_netrc", ".pypirc", ".npmrc", ".yarnrc*", ".git-credentials", ".pgpass", ".my.cnf", ".htpasswd",
    ".dockercfg", ".vault-token", ".s3cfg", ".boto", "kubeconfig*", "client_secret*", "service-account*.json",
    "service_account*.json", "secrets.toml", "secrets.y*ml", "secrets.json", "secrets.ini", "shadow", "gshadow",
    ".*_history", "*.tfstate", "*.ovpn",
)  # fmt: skip
"""Patterns of file names, in lower case, that are refused."""

KERNEL_ROOTS = ("/proc", "/sys", "/dev")
"""What stands here is no stored file, however regular it looks: ``/proc/self/environ`` holds the keys."""

_SWAPPED = "{} is a link that leads in a circle, or was swapped for one while it was checked"


class FileRefused(JarvisError):  # noqa: N818 - "refused" says it
    """A file that may not or cannot be read.

    Codes: ``not_found``, ``not_a_file``, ``secret_file``, ``too_large``, ``binary_file``, ``unreadable``,
    ``changed_meanwhile``.
    """

    code = "file_refused"


def looks_secret(path: str | os.PathLike[str]) -> bool:
    """Whether a path names something that usually holds keys or passwords.

    Example:
        >>> looks_secret("app/.env.local"), looks_secret("app/environment.md"), looks_secret("/home/ada/.ssh/config")
        (True, False, True)
    """
    parts = [part.lower() for part in Path(path).parts]
    if not parts:
        return False
    if not SECRET_FOLDERS.isdisjoint(parts[:-1]):
        return True
    name = parts[-1]
    if name == "config.toml" and len(parts) > 1 and parts[-2].startswith(("jarvis_nb", "jarvis-nb")):
        return True  # this package's own config may hold a table of secrets
    return any(fnmatchcase(name, pattern) for pattern in SECRET_FILES)


def read_regular(path: str, shown: str, limit: int) -> bytes:
    """Return the bytes of a regular file, opened without following any link and without ever blocking.

    Args:
        path: An absolute path without links (``os.path.realpath``). A link found on the way now was put
            there after the path was checked, so it is refused.
        shown: How errors call the file.
        limit: The most bytes, inclusive.

    Raises:
        FileRefused: With a code; see the class.
    """
    if path.startswith(tuple(f"{root}/" for root in KERNEL_ROOTS)):
        raise FileRefused(
            f"{shown} is not a stored file: {path.split('/')[1]} belongs to the system", code="not_a_file"
        )
    try:
        _check_kind(os.lstat(path).st_mode, shown)
    except OSError as error:
        raise _refusal(error, shown) from None
    try:
        handle = _open_without_links(path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, getattr(errno, "EMLINK", errno.ELOOP)):
            raise FileRefused(_SWAPPED.format(shown), code="changed_meanwhile") from None
        raise _refusal(error, shown) from None
    try:
        facts = os.fstat(handle)
        _check_kind(facts.st_mode, shown)
        size = facts.st_size
        if size <= limit:
            with open(handle, "rb", closefd=False) as file:
                data = file.read(limit + 1)  # a file may grow meanwhile
            if len(data) <= limit:
                return data
            size = len(data)
    except OSError as error:
        raise _refusal(error, shown) from None
    finally:
        os.close(handle)
    raise FileRefused(f"{shown} has {size:,} bytes or more, at most {limit:,} are read", code="too_large")


def decode_text(data: bytes, shown: str) -> str:
    """Return bytes as text.

    Raises:
        FileRefused: ``binary_file``: not UTF-8, or with NUL bytes.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileRefused(
            f"{shown} is not UTF-8 text (byte {error.start:,} is {data[error.start]:#04x}): binary files are not read",
            code="binary_file",
        ) from None
    if "\0" in text:
        raise FileRefused(f"{shown} has NUL bytes: binary files are not read", code="binary_file")
    return text


def _check_kind(mode: int, shown: str) -> None:
    if stat.S_ISREG(mode):
        return
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    if stat.S_ISLNK(mode):
        raise FileRefused(_SWAPPED.format(shown), code="changed_meanwhile")
    raise FileRefused(
        f"{shown} is {kinds.get(stat.S_IFMT(mode), 'no regular file')}, not a file", code="not_a_file"
    )


def _flag(name: str) -> int:
    return getattr(os, name, 0)  # absent on some systems


def _open_without_links(path: str) -> int:
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
        flags |= _flag(name)
    if os.open not in os.supports_dir_fd or not _flag("O_NOFOLLOW"):
        return os.open(path, flags)
    # O_NOFOLLOW guards the last part only: each folder is opened from the one above, so none can be swapped.
    folder_flags = _flag("O_PATH") | _flag("O_DIRECTORY") | _flag("O_NOFOLLOW") | _flag("O_CLOEXEC")
    *folders, name = Path(path).parts
    here = os.open(folders[0], folder_flags)
    try:
        for folder in folders[1:]:
            above, here = here, os.open(folder, folder_flags, dir_fd=here)
            os.close(above)
        return os.open(name, flags, dir_fd=here)
    finally:
        os.close(here)


def _refusal(error: OSError, shown: str) -> FileRefused:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FileRefused(f"{shown} does not exist", code="not_found")
    return FileRefused(f"{shown} cannot be read: {error.strerror or error}", code="unreadable")
