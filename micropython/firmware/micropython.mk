# Adds the module weft_board for the emulated board. Other ports that use the folder above leave it out.
ifeq ($(QEMU_ARCH),arm)
SRC_USERMOD_C += $(USERMOD_DIR)/weft_board.c
endif
