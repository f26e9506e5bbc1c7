# Adds the native core as a user C module to ports that make builds: make USER_C_MODULES=…/micropython
WEFT_NATIVE_DIR := $(USERMOD_DIR)
SRC_USERMOD_C += $(WEFT_NATIVE_DIR)/weft_native.c
CFLAGS_USERMOD += -I$(WEFT_NATIVE_DIR)
