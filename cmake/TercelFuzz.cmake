# fuzz/<thing>_fuzz.cpp: one libFuzzer program each; the seeds are in fuzz/corpus/<thing>/.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang OR NOT TERCEL_SANITIZE)
  message(FATAL_ERROR "TERCEL_FUZZ needs clang (libFuzzer) and TERCEL_SANITIZE; the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()

# The layers with parsers, whose coverage guides the search. In others it would only make the tests slow.
foreach(layer IN ITEMS util core io data recsys)
  target_compile_options(tercel_${layer} PRIVATE -fsanitize=fuzzer-no-link)
endforeach()

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cpp)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  # Only the layers that the target includes, and their dependencies, are built for it: most parsers need no ops.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} includes REGEX "^#include \"tercel/[a-z]+/")
  list(TRANSFORM includes REPLACE "^#include \"tercel/([a-z]+)/.*" "tercel_\\1")
  list(REMOVE_DUPLICATES includes)
  target_link_libraries(${name} PRIVATE tercel_code ${includes} ZLIB::ZLIB)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()
