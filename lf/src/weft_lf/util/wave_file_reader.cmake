# Adds wave_file_reader.c, which `files` has put beside the program, to the program.
target_sources(${LF_MAIN_TARGET} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/wave_file_reader.c)
