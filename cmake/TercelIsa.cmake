# Kernels are compiled once per instruction set, and their code must not be used by the rest of the program: the linker
# could otherwise keep a weak symbol (an inline function, a template) of an AVX-512 object as the only copy. So the objects
# of a layer and an instruction set are joined (`ld -r --force-group-allocation`, which dissolves the groups of weak
# symbols), and all symbols except the strong ones of their own namespace become local.
# tools/check_isa_objects.py checks the result.

set(TERCEL_MAX_ISA avx512 CACHE STRING "The last instruction set that kernels are compiled for: generic, avx2 or avx512")
set(TERCEL_ISAS generic avx2 avx512)
list(FIND TERCEL_ISAS "${TERCEL_MAX_ISA}" TERCEL_MAX_ISA_LEVEL)
if(TERCEL_MAX_ISA_LEVEL LESS 0)
  message(FATAL_ERROR "TERCEL_MAX_ISA=${TERCEL_MAX_ISA}: expected generic, avx2 or avx512")
endif()
math(EXPR tercel_isa_count "${TERCEL_MAX_ISA_LEVEL} + 1")
list(SUBLIST TERCEL_ISAS 0 ${tercel_isa_count} TERCEL_ISAS)
if(TERCEL_MAX_ISA_LEVEL LESS 2)
  target_compile_definitions(tercel_base INTERFACE TERCEL_MAX_ISA_LEVEL=${TERCEL_MAX_ISA_LEVEL})
endif()
# For first builds, in half the time. Kernels of the other instruction sets become aliases of those for this machine's, so
# other objects do not depend on the option, and a later build without it compiles only the missing kernels.
option(TERCEL_NATIVE_KERNELS "Compile kernels for this machine's instruction set alone; the program runs nowhere else" OFF)
if(TERCEL_NATIVE_KERNELS)
  # The levels x86-64-v3 and v4, as in util/cpu_info.cpp.
  set(TERCEL_ISA_NEEDS_avx2 avx2 bmi1 bmi2 f16c fma abm movbe xsave)
  set(TERCEL_ISA_NEEDS_avx512 ${TERCEL_ISA_NEEDS_avx2} avx512f avx512bw avx512cd avx512dq avx512vl)
  file(STRINGS /proc/cpuinfo tercel_cpu_flags REGEX "^flags" LIMIT_COUNT 1)
  foreach(isa IN LISTS TERCEL_ISAS)
    set(lacking "")
    foreach(flag IN LISTS TERCEL_ISA_NEEDS_${isa})
      if(NOT tercel_cpu_flags MATCHES " ${flag}( |$)")
        list(APPEND lacking ${flag})
      endif()
    endforeach()
    if(NOT lacking)
      set(TERCEL_NATIVE_ISA ${isa})
    endif()
  endforeach()
endif()

set(TERCEL_ISA_LEVEL_generic 0)
set(TERCEL_ISA_LEVEL_avx2 1)
set(TERCEL_ISA_LEVEL_avx512 2)
set(TERCEL_ISA_FLAGS_generic -march=x86-64)
set(TERCEL_ISA_FLAGS_avx2 -march=x86-64 -mavx2 -mfma -mf16c -mbmi2)
set(TERCEL_ISA_FLAGS_avx512 -march=x86-64 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mfma -mf16c -mbmi2
    -mprefer-vector-width=512)

# GNU binutils for every compiler: lld does not support --force-group-allocation.
find_program(TERCEL_LD NAMES ld.bfd ld)
find_program(TERCEL_NM nm)
find_program(TERCEL_OBJCOPY objcopy)
mark_as_advanced(TERCEL_LD TERCEL_NM TERCEL_OBJCOPY)
set(TERCEL_ISOLATE_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/IsolateIsa.cmake)

# Adds the kernel sources to tercel_<layer>, and the joined objects to the global property TERCEL_ISA_OBJECTS.
function(tercel_isa_kernels layer sources libs)
  set(isas ${TERCEL_ISAS})
  set(aliases "")
  if(TERCEL_NATIVE_KERNELS)
    set(isas ${TERCEL_NATIVE_ISA})
    set(aliases ${TERCEL_ISAS})
    list(REMOVE_ITEM aliases ${TERCEL_NATIVE_ISA})
    list(TRANSFORM aliases PREPEND cpu_)
    list(JOIN aliases "," aliases)
  endif()
  foreach(isa IN LISTS isas)
    set(target tercel_${layer}_${isa})
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${target} PRIVATE tercel_kernels ${libs})
    add_dependencies(${target} tercel_op_table)
    target_compile_definitions(${target} PRIVATE
      TERCEL_ISA=cpu_${isa} TERCEL_ISA_LEVEL=${TERCEL_ISA_LEVEL_${isa}} xsimd=xsimd_${isa})
    target_compile_options(${target} PRIVATE ${TERCEL_ISA_FLAGS_${isa}})
    if(isa STREQUAL generic)
      set_target_properties(${target} PROPERTIES TERCEL_SMALL_KERNELS ON)
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # A "unique" symbol (a static variable of an inline function) could not be made local.
      target_compile_options(${target} PRIVATE -fno-gnu-unique)
      if(isa STREQUAL avx512)
        # g++ 12 warns inside its own AVX-512 intrinsics.
        target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-uninitialized)
      endif()
    endif()

    set(object ${PROJECT_BINARY_DIR}/isa/${target}.o)
    if(aliases)
      # A separate name, so that ninja does not confuse it with the object without aliases.
      set(object ${PROJECT_BINARY_DIR}/isa/native/${target}.o)
    endif()
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -DLD=${TERCEL_LD} -DNM=${TERCEL_NM} -DOBJCOPY=${TERCEL_OBJCOPY} -DISA=cpu_${isa}
              "-DALIASES=${aliases}" -DOUTPUT=${object} -P ${TERCEL_ISOLATE_SCRIPT} -- $<TARGET_OBJECTS:${target}>
      DEPENDS ${target} $<TARGET_OBJECTS:${target}> ${TERCEL_ISOLATE_SCRIPT}
      COMMENT "Isolating ${target}"
      COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(${target}_isolated DEPENDS ${object})
    add_dependencies(tercel_${layer} ${target}_isolated)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_sources(tercel_${layer} PRIVATE ${object})
    set_property(GLOBAL APPEND PROPERTY TERCEL_ISA_OBJECTS ${object})
    set_property(GLOBAL APPEND PROPERTY TERCEL_ISA_TARGETS ${target}_isolated)
  endforeach()
endfunction()
