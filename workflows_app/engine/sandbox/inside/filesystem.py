"""The files a block may see: the standard library, its shared libraries, a few devices, its own folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import sysconfig
import tempfile
from pathlib import Path

from . import landlock, linux

OWN_FOLDER = "/tmp"  # noqa: S108 - inside the new root: a tmpfs of the block's own
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_DATA = ("/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so.cache")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_STAGING = ("/mnt", "/media", "/srv", "/var/tmp", "/tmp", "/opt")  # noqa: S108 - only a place to mount on
_STAT_TO_MOUNT = (
    (os.ST_RDONLY, linux.MS_RDONLY),
    (os.ST_NOSUID, linux.MS_NOSUID),
    (getattr(os, "ST_NODEV", 4), linux.MS_NODEV),
    (getattr(os, "ST_NOEXEC", 8), linux.MS_NOEXEC),
    (getattr(os, "ST_RELATIME", 4096), linux.MS_RELATIME),
)
_FOLDER_PREFIX = "runsight-code-"


def standard_library() -> list[str]:
    """Name the folders that `import` reads."""
    names = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return sorted({str(Path(name).resolve()) for name in names} | set(names))


def readable_paths() -> list[str]:
    """Name everything a block may read."""
    return [path for path in (*_LIBRARIES, *standard_library(), *_DATA) if Path(path).exists()]


def grants(*, has_private_root: bool) -> list[tuple[str, int]]:
    """Say the same to Landlock; in the private root everything there is may be read."""
    if has_private_root:
        return [("/", landlock.READ), ("/dev", landlock.DEVICE)]
    rules = [(path, landlock.READ) for path in readable_paths()]
    return rules + [(path, landlock.DEVICE) for path in _DEVICES]


def enter_private_root() -> None:
    """Build a root with only those paths, read-only, and move into it; needs a mount namespace."""
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    paths = readable_paths()
    staging = next(place for place in _STAGING if Path(place).is_dir() and not _contains(place, paths))
    linux.mount("tmpfs", staging, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,mode=755")
    for path in paths:
        _show(path, staging)
    for device in _DEVICES:
        if Path(device).exists():
            _bind(device, staging + device, read_only=False)
    Path(staging + OWN_FOLDER).mkdir(mode=0o755, exist_ok=True)
    linux.enter_root(staging)
    linux.mount(
        None, "/", None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    )


def _contains(place: str, paths: list[str]) -> bool:
    return any(Path(path).is_relative_to(place) for path in paths)


def _show(path: str, staging: str) -> None:
    """Repeat a symlink as it is; bind anything else read-only."""
    target = Path(staging + path)
    source = Path(path)
    if source.is_symlink() and source.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(os.readlink(path))  # noqa: PTH115 - the text, not a resolved path
        return
    _bind(path, str(target), read_only=True)


def _bind(source: str, target: str, *, read_only: bool) -> None:
    place = Path(target)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_dir():
            place.mkdir()
        else:
            place.touch()
    linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)
    if not read_only:
        return
    # Flags that the source's mount carries are locked in a user namespace and have to be repeated.
    held = os.statvfs(target).f_flag
    flags = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    for stat_flag, mount_flag in _STAT_TO_MOUNT:
        if held & stat_flag:
            flags |= mount_flag
    linux.mount(None, target, None, flags)


def mount_own_folder(max_bytes: int) -> str:
    """Give this process an empty, size-limited folder that vanishes with its mount namespace."""
    linux.unshare(linux.CLONE_NEWNS)
    options = f"size={max_bytes},nr_inodes=4096,mode=777"
    linux.mount("tmpfs", OWN_FOLDER, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC, options)
    return OWN_FOLDER


def make_own_folder() -> str:
    """Make a folder on disk, for systems where a block cannot have a file system of its own."""
    return tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-")


def remove_own_folder(path: str) -> None:
    """Remove the folder, whatever modes and links the block put into it."""
    try:
        os.rmdir(path)  # noqa: PTH106 - on the way of every block; most leave it empty
    except OSError:
        if Path(path).is_symlink():
            Path(path).unlink(missing_ok=True)
            return
        if os.geteuid() != 0:  # root needs no modes, and must not be led to change a stranger's
            _open_modes(Path(path))
        shutil.rmtree(path, ignore_errors=True)


def _open_modes(top: Path) -> None:
    """Make every folder below readable; a link is left alone, since its target is not the block's."""
    with contextlib.suppress(OSError):
        top.chmod(0o700)
    for folder, names, _ in os.walk(top):
        for name in names:
            place = Path(folder, name)
            if not place.is_symlink():
                with contextlib.suppress(OSError):
                    place.chmod(0o700)


def remove_abandoned_folders() -> None:
    """Clear what a killed zygote could not."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*-*"):
        owner = folder.name.removeprefix(_FOLDER_PREFIX).split("-")[0]
        try:
            is_ours = folder.stat().st_uid == os.geteuid() or os.geteuid() == 0
        except OSError:
            continue  # another zygote was quicker
        if owner.isdigit() and is_ours and not _is_alive(int(owner)):
            remove_own_folder(str(folder))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
