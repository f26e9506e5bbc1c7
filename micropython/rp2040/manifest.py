# The modules that are frozen into the firmware for the RP2040: the port's own, asyncio, and Weft.
# WEFT_DIR is the folder micropython/.
freeze("$(PORT_DIR)/modules")
include("$(MPY_DIR)/extmod/asyncio")
package("weft", base_path="$(WEFT_DIR)")
