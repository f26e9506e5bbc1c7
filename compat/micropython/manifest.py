# The names of aPyCSP and PyCSP-locksharing, frozen into a firmware with Weft. Both must be frozen
# together: a frozen package finds its modules only among those that are frozen.
include("../../micropython/manifest.py")
metadata(description="Old names: aPyCSP, PyCSP-locksharing", version="0.1.0")
package("weft")
