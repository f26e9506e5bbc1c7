# Adds sensor_simulator.c, which `files` has put beside the program, to the program.
target_sources(${LF_MAIN_TARGET} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/sensor_simulator.c)
