# The emulated board's own module; other ports that take in the folder above leave it out.
ifeq ($(QEMU_ARCH),arm)
SRC_USERMOD_C += $(USERMOD_DIR)/weft_board.c
endif
