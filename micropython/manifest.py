# Freezes Weft into a firmware: require("weft") from a manifest, or
# FROZEN_MANIFEST=…/micropython/manifest.py.
metadata(description="Communicating processes: channels, choice, poison", version="0.1.0")
package("weft")
