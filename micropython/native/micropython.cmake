# Adds the native core as a user C module to ports that CMake builds (rp2, esp32): -DUSER_C_MODULES=…/micropython.cmake
add_library(usermod_weft INTERFACE)
target_sources(usermod_weft INTERFACE ${CMAKE_CURRENT_LIST_DIR}/weft_native.c)
target_include_directories(usermod_weft INTERFACE ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(usermod INTERFACE usermod_weft)
