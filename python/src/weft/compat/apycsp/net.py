"""aPyCSP's net module, which this layer does not have."""

raise ImportError(
    "weft.compat.apycsp.net: channels over aPyCSP's JSON protocol are not part of this layer; "
    "keep both programs on aPyCSP, or the network in one program"
)
