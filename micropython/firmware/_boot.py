"""Mounts the memory disk at / before other code runs. The disk's contents outlive a soft reset, but
not the end of the emulator."""

import sys

import vfs
import weft_board


class MemoryDisk:
    """A block device in a part of the board's memory that is not in the heap."""

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
        if operation == 4:  # the number of blocks
            return len(self.memory) // self.SIZE
        if operation == 5:  # the size of a block
            return self.SIZE
        if operation == 6:  # erase a block, which memory does not need
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
