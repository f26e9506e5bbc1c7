# Adds audio_loop_linux.c, which `files` has put beside the program, to the program.
target_sources(${LF_MAIN_TARGET} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/audio_loop_linux.c)
