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
$(CSP): %: $(OUT)/%.uf2
csp: $(CSP:%=$(OUT)/%.uf2)
$(OUT)/app/%.o: csp/examples/%.cpp; @mkdir -p $(@D); $(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@
$(OUT)/app/%.o: csp/tests/%.cpp; @mkdir -p $(@D); $(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@
.PHONY: csp $(CSP)
