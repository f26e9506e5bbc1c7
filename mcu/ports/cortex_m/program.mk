# Your own program for a board with a Cortex-M, from your own folder: a Makefile of four lines.
#   PROGRAM = hello
#   SOURCES = hello.c
#   BOARD = stm32f4
#   include weft/mcu/ports/cortex_m/program.mk
# `make` builds build/BOARD/hello.elf and hello.bin; DEBUG=1 and STATS=1 work as in mcu/Makefile.
# BOARD is stm32f4, nrf51 or an521. CFLAGS is for your own options, for C and C++. Paths must not
# contain spaces.
WEFT_MCU := $(dir $(lastword $(MAKEFILE_LIST)))../../
SOURCES ?= $(PROGRAM).c
OUT ?= build/$(BOARD)$(if $(DEBUG),-debug)$(if $(STATS),-stats)
PLACE = $(WEFT_MCU)ports/$(BOARD)
# The first line of `options` is for the compiler, the second lists the port's sources, from mcu/.
MACHINE := $(shell sed -n 1p $(PLACE)/options) $(EXTRA)
PORTED := $(shell sed -n 2p $(PLACE)/options)
COMMON = $(MACHINE) -O2 -g -ffreestanding -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections -Wall -Wextra \
         -I$(WEFT_MCU)include -I$(PLACE) -DWEFT_DEBUG=$(if $(DEBUG),1,0) -DWEFT_STATS=$(if $(STATS),1,0)
C = arm-none-eabi-gcc -std=c11 $(COMMON)
CXX = arm-none-eabi-g++ -std=c++20 $(COMMON) -fno-exceptions -fno-rtti -fno-threadsafe-statics -I$(WEFT_MCU)csp/include -I$(WEFT_MCU)../cpp/include
RUNTIME = $(patsubst $(WEFT_MCU)%,%,$(wildcard $(WEFT_MCU)src/*.c)) ports/freestanding/memory.c $(PORTED)
OBJECTS = $(RUNTIME:%=$(OUT)/weft/%.o) $(SOURCES:%=$(OUT)/own/%.o)

$(OUT)/$(PROGRAM).bin: $(OUT)/$(PROGRAM).elf
	arm-none-eabi-objcopy -O binary $< $@
$(OUT)/$(PROGRAM).elf: $(OBJECTS) $(PLACE)/$(BOARD).ld
	$(C) -nostdlib -Wl,--gc-sections -Wl,--no-warn-rwx-segments -L $(WEFT_MCU)ports/cortex_m -T $(PLACE)/$(BOARD).ld $(OBJECTS) -lgcc -o $@
$(OUT)/weft/%.c.o: $(WEFT_MCU)%.c; @mkdir -p $(@D); $(C) -MMD -MP -c $< -o $@
$(OUT)/weft/%.S.o: $(WEFT_MCU)%.S; @mkdir -p $(@D); $(C) -c $< -o $@
$(OUT)/own/%.c.o: %.c; @mkdir -p $(@D); $(C) $(CFLAGS) -MMD -MP -c $< -o $@
$(OUT)/own/%.cpp.o: %.cpp; @mkdir -p $(@D); $(CXX) $(CFLAGS) -MMD -MP -c $< -o $@
$(OUT)/own/%.S.o: %.S; @mkdir -p $(@D); $(C) $(CFLAGS) -c $< -o $@
.SECONDARY:
-include $(OBJECTS:.o=.d)
