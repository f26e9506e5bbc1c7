# The module that is frozen into the unix builds: asyncio, as in Debian's binary. Weft itself is
# imported from its folder.
include("$(MPY_DIR)/extmod/asyncio")
