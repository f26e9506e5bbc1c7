# Builds the ball's controllers, and its sensor path as processes, with the rules and flags of mcu/csp:
# make -C mcu -f ../theses/device/firmware.mk OUT=… EXTRA=… NAME.elf
MORE = $(notdir $(basename $(wildcard ../theses/device/firmware/*.c ../theses/device/firmware/*.cpp)))
include csp/csp.mk
$(OUT)/app/%.o: ../theses/device/firmware/%.c; @mkdir -p $(@D); $(CC) $(FLAGS) -MMD -c $< -o $@
$(OUT)/app/%.o: ../theses/device/firmware/%.cpp; @mkdir -p $(@D); $(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@
