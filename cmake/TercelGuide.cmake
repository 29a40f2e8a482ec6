# Every docs/guide/*.md with C++ code becomes a program, guide_<page>, and a test, guide.<page>, which checks that the
# code compiles, runs and prints the output that the page shows. See tools/guide_programs.py.

file(GLOB guide_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/guide/*.md)
set(guide_script ${PROJECT_SOURCE_DIR}/tools/guide_programs.py)
foreach(page IN LISTS guide_pages)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(STRINGS ${page} has_code REGEX "^```cpp" LIMIT_COUNT 1)
  if(NOT has_code)
    continue()
  endif()
  get_filename_component(name ${page} NAME_WE)
  set(source ${PROJECT_BINARY_DIR}/generated/guide/${name}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND Python3::Interpreter -B ${guide_script} write ${page} ${source}
    COMMAND ${CMAKE_COMMAND} -E touch ${source}
    DEPENDS ${page} ${guide_script} COMMENT "Making a program of docs/guide/${name}.md" VERBATIM)
  add_executable(guide_${name} ${source})
  set_target_properties(guide_${name} PROPERTIES TERCEL_IS_TEST ON)
  target_link_libraries(guide_${name} PRIVATE tercel_code tercel)
  add_test(NAME guide.${name} COMMAND Python3::Interpreter -B ${guide_script} check ${page} $<TARGET_FILE:guide_${name}>)
  set_tests_properties(guide.${name} PROPERTIES LABELS guide ENVIRONMENT "${tercel_test_environment}")
endforeach()
