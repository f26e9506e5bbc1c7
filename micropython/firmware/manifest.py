# The modules that are frozen into the firmware: asyncio, and _boot.py, which mounts the file system
# in memory. Weft itself is imported from that file system or from a mounted folder.
include("$(MPY_DIR)/extmod/asyncio")
freeze(".", "_boot.py")
