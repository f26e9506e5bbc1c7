# Builds the ball's controllers with the rules and flags of the runtime's Makefile: make -C mcu -f device/firmware.mk OUT=… EXTRA=… NAME.elf
include Makefile
$(OUT)/app/%.o: device/firmware/%.c; @mkdir -p $(@D); $(CC) $(FLAGS) -MMD -c $< -o $@
