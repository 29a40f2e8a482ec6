# Writes version.cpp with the version and, in a git checkout, the commit. The commit is read when CMake configures, which
# scripts/build does each time: a new commit rebuilds only this object.
set(TERCEL_REVISION "")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE TERCEL_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${PROJECT_SOURCE_DIR}/tercel/util/version.cpp.in ${PROJECT_BINARY_DIR}/generated/version.cpp @ONLY)
