"""`pycsp.common`: plugNplay, toolkit and trace, over the module of pycsp that was imported last."""
