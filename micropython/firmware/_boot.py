"""Mounts the memory disk at / before anything else runs. It outlives a soft reset, not the emulator."""

import sys

import vfs
import weft_board


class MemoryDisk:
    """A block device in memory of the board's that is no part of the heap."""

    SIZE = 512

    def __init__(self, memory):
        self.memory = memoryview(memory)

    def readblocks(self, block, into, offset=0):
        at = block * self.SIZE + offset
        into[:] = self.memory[at : at + len(into)]

    def writeblocks(self, block, source, offset=0):
        at = block * self.SIZE + offset
        self.memory[at : at + len(source)] = source

    def ioctl(self, operation, argument):
        if operation == 4:  # how many blocks
            return len(self.memory) // self.SIZE
        if operation == 5:  # their size
            return self.SIZE
        if operation == 6:  # erase: nothing to do
            return 0


def mount():
    disk = MemoryDisk(weft_board.disk())
    try:
        fs = vfs.VfsLfs2(disk)
    except OSError:
        vfs.VfsLfs2.mkfs(disk)
        fs = vfs.VfsLfs2(disk)
    vfs.mount(fs, "/")


mount()
if "/lib" not in sys.path:
    sys.path.append("/lib")
