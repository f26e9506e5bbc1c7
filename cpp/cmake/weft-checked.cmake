# weft::checked of an installed package: the library for a test that calls weft::check
# (cpp/docs/checking.md). It is compiled in the project that links it, with the options of that
# project: a test with a sanitizer or WEFT_CHECKS needs a library of the same kind. Weft's warnings
# are switched off in that project. weft-config.cmake sets _weft_sources and _weft_headers.
if(NOT TARGET weft_checked)
  add_library(weft_checked STATIC EXCLUDE_FROM_ALL "${_weft_sources}/weft.cpp")
  target_compile_features(weft_checked PUBLIC cxx_std_20)
  target_compile_definitions(weft_checked PUBLIC WEFT_CHECKED=1)
  target_compile_options(weft_checked PRIVATE $<IF:$<CXX_COMPILER_ID:MSVC>,/w,-w>)
  target_include_directories(weft_checked SYSTEM PUBLIC "${_weft_headers}")
  target_link_libraries(weft_checked PUBLIC Threads::Threads)
  add_library(weft::checked ALIAS weft_checked)
endif()
