"""A disk over a folder that folds letters and Unicode forms, as APFS does: a name is that of the entry that is like it.

Rule: the identity of files and the times are those of the folder below, and nothing is cached, so that both are one disk.
"""

import os
import sys
import unicodedata

from fuse import FUSE, FuseOSError, Operations

STATUS = ("st_atime", "st_ctime", "st_gid", "st_ino", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")
SPACE = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag", "f_frsize", "f_namemax")


def key(name):
    def split(text):
        return unicodedata.normalize("NFD", text)

    return split(split(name).casefold())


def asked(operation, *arguments):
    try:
        return operation(*arguments)
    except OSError as error:
        raise FuseOSError(error.errno) from error


class FoldingDisk(Operations):
    def __init__(self, root):
        self.root = root

    def real(self, path):
        place = self.root
        for name in filter(None, path.split("/")):
            try:
                names = os.listdir(place)
            except OSError:
                names = []
            place = os.path.join(place, next((other for other in names if key(other) == key(name)), name))
        return place

    def getattr(self, path, fh=None):
        status = asked(os.lstat, self.real(path))
        return {name: getattr(status, name) for name in STATUS}

    def statfs(self, path):
        space = asked(os.statvfs, self.real(path))
        return {name: getattr(space, name) for name in SPACE}

    def readdir(self, path, fh):
        return [".", "..", *asked(os.listdir, self.real(path))]

    def readlink(self, path):
        return asked(os.readlink, self.real(path))

    def mkdir(self, path, mode):
        return asked(os.mkdir, self.real(path), mode)

    def rmdir(self, path):
        return asked(os.rmdir, self.real(path))

    def unlink(self, path):
        return asked(os.unlink, self.real(path))

    def symlink(self, target, source):
        return asked(os.symlink, source, self.real(target))

    def link(self, target, source):
        return asked(os.link, self.real(source), self.real(target))

    def rename(self, old, new):
        source, target = self.real(old), self.real(new)
        if source == target:
            target = os.path.join(os.path.dirname(target), os.path.basename(new))
        return asked(os.rename, source, target)

    def chmod(self, path, mode):
        return asked(os.chmod, self.real(path), mode)

    def chown(self, path, uid, gid):
        return asked(os.chown, self.real(path), uid, gid)

    def utimens(self, path, times=None):
        return asked(os.utime, self.real(path), times)

    def open(self, path, flags):
        return asked(os.open, self.real(path), flags)

    def create(self, path, mode, fi=None):
        return asked(os.open, self.real(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        return asked(os.pread, fh, size, offset)

    def write(self, path, data, offset, fh):
        return asked(os.pwrite, fh, data, offset)

    def truncate(self, path, length, fh=None):
        return asked(os.truncate, self.real(path) if fh is None else fh, length)

    def fsync(self, path, datasync, fh):
        return asked(os.fsync, fh)

    def release(self, path, fh):
        return os.close(fh)


FUSE(
    FoldingDisk(sys.argv[1]),
    sys.argv[2],
    foreground=True,
    use_ino=True,
    direct_io=True,
    attr_timeout=0,
    entry_timeout=0,
)
