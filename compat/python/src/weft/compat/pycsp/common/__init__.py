"""`pycsp.common`: plugNplay, toolkit and trace, over whichever module of pycsp was imported
last."""
