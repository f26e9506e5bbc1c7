# Your own program, from your own folder: a Makefile of three lines.
#   PROGRAM = hello
#   SOURCES = hello.c
#   include weft/mcu/program.mk
# `make` builds build/rp2040/hello.uf2 (and .elf, .bin); DEBUG=1, FLASH=1, STATS=1 and FLIGHT=256
# work as in Makefile, whose rules are used, and each has a folder of its own. CFLAGS is for your
# own options: include paths, warnings. Paths must not contain spaces.
SOURCES ?= $(PROGRAM).c
OUT ?= build/$(VARIETY)
WEFT_MCU := $(dir $(lastword $(MAKEFILE_LIST)))
OWN = $(SOURCES:%=$(OUT)/own/%.o)

include $(WEFT_MCU)Makefile
.DEFAULT_GOAL := program
program: $(OUT)/$(PROGRAM).uf2
$(OUT)/own/%.c.o: %.c; @mkdir -p $(@D); $(CC) $(filter-out -Werror,$(FLAGS)) $(CFLAGS) -MMD -MP -c $< -o $@
$(OUT)/own/%.S.o: %.S; @mkdir -p $(@D); $(CC) $(MACHINE) $(CFLAGS) -c $< -o $@
$(OUT)/$(PROGRAM).elf: $(OWN) $(RUNTIME) $(PORT) $(SCRIPT)
	$(JOIN)
.PHONY: program
-include $(OWN:.o=.d)
