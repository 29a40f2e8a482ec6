# The installed products, linked from the layers' objects: libtercel.a, libtercel.so and the program tercel.

get_property(TERCEL_LAYERS GLOBAL PROPERTY TERCEL_LAYERS)
get_property(TERCEL_ISA_OBJECTS GLOBAL PROPERTY TERCEL_ISA_OBJECTS)
get_property(TERCEL_ISA_TARGETS GLOBAL PROPERTY TERCEL_ISA_TARGETS)

function(tercel_library target type)
  add_library(${target} ${type} ${TERCEL_ISA_OBJECTS})
  foreach(layer IN LISTS TERCEL_LAYERS)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:tercel_${layer}>)
  endforeach()
  if(TERCEL_ISA_TARGETS)
    add_dependencies(${target} ${TERCEL_ISA_TARGETS})
  endif()
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX OUTPUT_NAME tercel VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${TERCEL_GENERATED}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE ${TERCEL_LINK_LIBRARIES})
endfunction()

tercel_library(tercel STATIC)
add_library(tercel::tercel ALIAS tercel)

# A sanitizer's runtime is linked into the program, so a shared library that must resolve all symbols cannot be built.
if(NOT TERCEL_SANITIZE AND NOT TERCEL_FUZZ)
  tercel_library(tercel_shared SHARED)
  add_library(tercel::tercel_shared ALIAS tercel_shared)
  set_target_properties(tercel_shared PROPERTIES EXPORT_NAME tercel_shared)
  target_link_libraries(tercel_shared PRIVATE $<BUILD_INTERFACE:tercel_base>)
  target_link_options(tercel_shared PRIVATE LINKER:-z,defs LINKER:-Bsymbolic-functions)
endif()

# The subcommands are a separate library, so that tests can call them.
file(GLOB tercel_cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.cpp)
list(FIND tercel_cli_sources ${PROJECT_SOURCE_DIR}/cli/main.cpp tercel_cli_main)
list(REMOVE_ITEM tercel_cli_sources ${PROJECT_SOURCE_DIR}/cli/main.cpp)
if(tercel_cli_sources)
  add_library(tercel_cli STATIC EXCLUDE_FROM_ALL ${tercel_cli_sources})
  target_link_libraries(tercel_cli PRIVATE tercel_code nlohmann_json::nlohmann_json PUBLIC tercel)
endif()
if(NOT tercel_cli_main EQUAL -1)
  add_executable(tercel_program cli/main.cpp)
  set_target_properties(tercel_program PROPERTIES OUTPUT_NAME tercel)
  foreach(module IN ITEMS tercel_arrow tercel_mpi)
    if(TARGET ${module})
      add_dependencies(tercel_program ${module})
    endif()
  endforeach()
  target_link_libraries(tercel_program PRIVATE tercel_code tercel $<$<TARGET_EXISTS:tercel_cli>:tercel_cli>)
endif()

if(PROJECT_IS_TOP_LEVEL)
  include(TercelInstall)
endif()
