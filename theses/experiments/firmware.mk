# Builds the experiments' firmware with the rules and flags of the runtime's Makefile: make -C mcu -f ../theses/experiments/firmware.mk [FLASH=1] NAME
include Makefile
$(OUT)/app/%.o: ../theses/experiments/firmware/%.c; @mkdir -p $(@D); $(CC) $(FLAGS) -MMD -MP -c $< -o $@
