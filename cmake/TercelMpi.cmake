# The module libtercel_mpi.so (tercel/mpi), which alone links MPI: the library loads it when a run asks for MPI. See
# Note [MPI module] in tercel/distributed/mpi_abi_impl.h.
#
# TERCEL_MPI: AUTO builds it where MPI's headers and library are (Debian's libopenmpi-dev), ON needs them, OFF does not
# build it.
set(TERCEL_MPI AUTO CACHE STRING "Build the module for several processes: AUTO, ON or OFF")

# ThreadSanitizer cannot see what an MPI without it synchronises.
if(TERCEL_MPI AND NOT TERCEL_SANITIZE MATCHES thread)
  find_package(MPI QUIET COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND AND NOT TERCEL_MPI STREQUAL AUTO)
    message(FATAL_ERROR "TERCEL_MPI=${TERCEL_MPI} needs MPI: apt-get install libopenmpi-dev")
  endif()
endif()

if(MPI_CXX_FOUND)
  # The C interface suffices; of the libraries, libmpi is what the module is linked with.
  set(tercel_mpi_library "")
  foreach(library IN LISTS MPI_CXX_LIBRARIES)
    if(library MATCHES "/libmpi\\.so")
      set(tercel_mpi_library ${library})
    endif()
  endforeach()
  if(NOT tercel_mpi_library)
    list(GET MPI_CXX_LIBRARIES 0 tercel_mpi_library)
  endif()
  # The name that programs are linked with, libmpi.so.40: others have another binary interface.
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${tercel_mpi_library} OUTPUT_VARIABLE header ERROR_QUIET)
  string(REGEX MATCH "SONAME +([^\n ]+)" match "${header}")
  set(tercel_mpi_name ${CMAKE_MATCH_1})

  file(GLOB mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tercel/mpi/*.cpp)
  add_library(tercel_mpi MODULE ${mpi_sources})
  target_include_directories(tercel_mpi SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS})
  target_compile_definitions(tercel_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(tercel_mpi PRIVATE ${tercel_mpi_library})
  # Without sanitizers, since MPI has none.
  target_include_directories(tercel_mpi PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(tercel_mpi PRIVATE $<TARGET_PROPERTY:tercel_base,INTERFACE_COMPILE_OPTIONS>)
  if(NOT TERCEL_SANITIZE)
    target_link_options(tercel_mpi PRIVATE LINKER:-z,defs)
  endif()
  set_source_files_properties(tercel/distributed/mpi_transport.cpp PROPERTIES COMPILE_DEFINITIONS
    "TERCEL_MPI_LIBRARY=\"${tercel_mpi_name}\"")
endif()
