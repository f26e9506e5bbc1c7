# Builds processes and channels with the runtime's Makefile: make -C mcu -f csp/csp.mk NAME, where
# NAME is an example or a firmware of the tests. DEBUG=1 and FLASH=1 mean the same as in the
# Makefile. OPTIMISE=-Os gives the smallest code.
include Makefile
CXX = arm-none-eabi-g++
OPTIMISE ?= -O2
CXXFLAGS = -std=c++20 -mcpu=cortex-m0plus -mthumb $(OPTIMISE) -g -ffreestanding -fno-exceptions -fno-rtti -fno-threadsafe-statics \
           -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections -Wall -Wextra -Werror -Iinclude -Iports/rp2040 -Icsp/include \
           -I../cpp/include -Ibench -Icsp/tests/rp2040 -DWEFT_DEBUG=$(if $(DEBUG),1,0) -DWEFT_STATS=$(if $(STATS),1,0) $(if $(FLIGHT),-DWEFT_FLIGHT=$(FLIGHT)) $(EXTRA)
CSP = $(notdir $(basename $(wildcard csp/examples/*.cpp csp/tests/*.cpp)))
# All programs are built in one folder, so two programs must not have one name.
ALL = $(sort $(NAMES)) $(CSP) $(MORE)
$(if $(filter $(words $(ALL)),$(words $(sort $(ALL)))),,$(error two programs have the same name: $(sort $(foreach n,$(ALL),$(if $(filter-out 1,$(words $(filter $n,$(ALL)))),$n)))))
# littlefs keeps the values of a FlashStore: LITTLEFS is a folder with its sources, which ./run setup
# mcu fetches. Newlib has the string functions that littlefs calls.
LITTLEFS ?= ../.build/littlefs
CXXFLAGS += -I$(LITTLEFS)
LFS = -DLFS_NO_MALLOC -DLFS_NO_ASSERT -DLFS_NO_DEBUG -DLFS_NO_WARN -DLFS_NO_ERROR -Wno-unused-function -Wno-format
$(OUT)/port/lfs.o: $(LITTLEFS)/lfs.c; @mkdir -p $(@D); $(CC) $(FLAGS) -Os $(LFS) -MMD -MP -c $< -o $@
$(OUT)/port/lfs_util.o: $(LITTLEFS)/lfs_util.c; @mkdir -p $(@D); $(CC) $(FLAGS) -Os $(LFS) -MMD -MP -c $< -o $@
STORES = flash_store starts driver_mistakes
$(LITTLEFS)/lfs.c:
	@echo "there is no littlefs in $(LITTLEFS): './run setup mcu' fetches it, or LITTLEFS=FOLDER names yours" >&2; exit 1
$(STORES:%=$(OUT)/app/%.o): $(LITTLEFS)/lfs.c
$(STORES:%=$(OUT)/%.elf): LIBRARIES = -lc
$(STORES:%=$(OUT)/%.elf): $(OUT)/port/lfs.o $(OUT)/port/lfs_util.o
$(CSP): %: $(OUT)/%.uf2
csp: $(CSP:%=$(OUT)/%.uf2)
$(OUT)/app/%.o: csp/examples/%.cpp; @mkdir -p $(@D); $(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@
$(OUT)/app/%.o: csp/tests/%.cpp; @mkdir -p $(@D); $(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@
.PHONY: csp $(CSP)
