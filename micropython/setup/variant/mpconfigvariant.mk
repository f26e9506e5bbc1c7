FROZEN_MANIFEST ?= $(VARIANT_DIR)/../manifest_unix.py
