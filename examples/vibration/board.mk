# Builds the board's program: make -C mcu -f ../examples/vibration/board.mk vibration. DEBUG=1,
# FLASH=1 and FLIGHT=256 mean the same as in mcu/Makefile. Makes .build/mcu/…/vibration.elf.
include csp/csp.mk
VIBRATION = ../examples/vibration
vibration: $(OUT)/vibration.uf2
$(OUT)/vibration/%.o: $(VIBRATION)/%.cpp; @mkdir -p $(@D); $(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@
$(OUT)/vibration.elf: $(OUT)/vibration/board.o $(OUT)/vibration/goertzel.o $(OUT)/vibration/accelerometer.o $(RUNTIME) $(PORT) $(SCRIPT)
	$(JOIN)
.PHONY: vibration
