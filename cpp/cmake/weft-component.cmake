# weft_add_component(NAME SOURCES…): a native component for weft.native.load(), the library NAME.so.
#
# It is available after find_package(weft) or add_subdirectory, or after include() of this file
# alone; the Python package has a copy in weft.native.cmake_dir().
function(weft_add_component name)
  if(NOT ARGN)
    message(FATAL_ERROR "weft_add_component(${name}): name its sources")
  endif()
  add_library(${name} MODULE ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_20)
  # A placeable source (weft/anywhere.hpp) becomes a component.
  target_compile_definitions(${name} PRIVATE WEFT_PLACE_COMPONENT)
  # A debug build says where an exception was thrown (weft/component_stack.hpp).
  target_compile_definitions(${name} PRIVATE $<$<CONFIG:Debug>:WEFT_COMPONENT_STACKS>)
  target_link_options(${name} PRIVATE $<$<CONFIG:Debug>:LINKER:--wrap=__cxa_throw>)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  foreach(at "../include" "../../../include") # in a checkout and the Python package; where CMake packages are installed
    get_filename_component(at "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${at}" ABSOLUTE)
    if(EXISTS "${at}/weft/component.hpp")
      target_include_directories(${name} PRIVATE "${at}")
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "weft_add_component(${name}): weft/component.hpp is not where this file expects it: ${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
endfunction()
